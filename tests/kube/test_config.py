"""From a kubeconfig, or a pod's own account, to credentials; or a ConfigError, and never anything else."""

import base64
import copy
import ssl
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddle_operator.kube import config
from paddle_operator.kube.config import ConfigError, from_file, load

Document = dict[str, Any]
SECRET = "s3cr3t-t0k3n"


@pytest.fixture(scope="module")
def pair() -> tuple[str, str]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), day, day + timedelta(days=36500)
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return (
        builder.sign(key, hashes.SHA256()).public_bytes(pem).decode(),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode(),
    )


def document(cluster: Any = None, user: Any = None) -> Document:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:8001/"} | (cluster or {})}],
        "users": [{"name": "u", "user": {"token": SECRET} if user is None else user}],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config"


def write(file: Path, content: Any) -> Path:
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return file


def inline(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_plain_file_gives_the_server_the_token_and_the_namespace(file: Path) -> None:
    found = from_file(write(file, document()))
    assert (found.server, found.token, found.namespace) == ("http://127.0.0.1:8001", SECRET, "team")
    assert found.tls is None
    assert found.token_file is None


def test_the_current_context_is_the_one_that_counts(file: Path) -> None:
    content = document()
    content["contexts"].insert(0, {"name": "there", "context": {"cluster": "x", "user": "u"}})
    content["clusters"].insert(0, {"name": "x", "cluster": {"server": "http://elsewhere"}})
    assert from_file(write(file, content)).server == "http://127.0.0.1:8001"
    content["current-context"] = "there"
    found = from_file(write(file, content))
    assert (found.server, found.namespace) == ("http://elsewhere", "default")


@pytest.mark.parametrize("token", [f"{SECRET}\n", f"  {SECRET}\r\n"])
def test_white_space_around_a_token_does_not_count(file: Path, token: str) -> None:
    assert from_file(write(file, document(user={"token": token}))).token == SECRET


@pytest.mark.parametrize("user", [None, {}, {"token": None}, {"token": ""}])
def test_a_user_may_have_no_credentials_at_all(file: Path, user: Document | None) -> None:
    content = document()
    content["users"][0]["user"] = user
    assert from_file(write(file, content)).token == ""


def test_a_token_file_is_found_relative_to_the_kubeconfig(file: Path) -> None:
    assert from_file(write(file, document(user={"tokenFile": "keys/token"}))).token_file == (
        file.parent / "keys/token"
    )


HTTPS: Document = {"server": "https://127.0.0.1:6443"}


class TestCertificates:
    def test_by_file_are_relative_to_the_kubeconfig(self, file: Path, pair: tuple[str, str]) -> None:
        for name, text in zip(("ca.crt", "me.crt", "me.key"), (pair[0], *pair), strict=True):
            (file.parent / name).write_text(text)
        user = {"client-certificate": "me.crt", "client-key": "me.key"}
        found = from_file(write(file, document(HTTPS | {"certificate-authority": "ca.crt"}, user)))
        assert found.tls is not None
        assert len(found.tls.get_ca_certs()) == 1
        assert found.tls.verify_mode is ssl.CERT_REQUIRED
        assert found.tls.check_hostname

    def test_may_be_inline(self, file: Path, pair: tuple[str, str]) -> None:
        user = {"client-certificate-data": inline(pair[0]), "client-key-data": inline(pair[1])}
        data = "\n".join(textwrap.wrap(inline("# d'après nous\n" + pair[0])))
        authority = {"certificate-authority-data": data}
        found = from_file(write(file, document(HTTPS | authority, user)))
        assert found.tls is not None
        assert len(found.tls.get_ca_certs()) == 1

    def test_may_be_one_by_file_and_one_inline(
        self, file: Path, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loaded: list[tuple[str, str]] = []
        monkeypatch.setattr(config, "_load_client_certificate", lambda _, *given: loaded.append(given))
        (file.parent / "me.crt").write_text(pair[0])
        user = {"client-certificate": "me.crt", "client-key-data": inline(pair[1])}
        from_file(write(file, document(HTTPS, user)))
        assert loaded == [pair]

    def test_are_not_checked_if_the_file_says_so(self, file: Path) -> None:
        found = from_file(write(file, document(HTTPS | {"insecure-skip-tls-verify": True})))
        assert found.tls is not None
        assert found.tls.verify_mode is ssl.CERT_NONE

    @pytest.mark.parametrize(
        ("cluster", "user"),
        [
            ({"certificate-authority": "missing"}, {}),
            ({"certificate-authority-data": "%%%"}, {}),
            ({"certificate-authority-data": inline("no certificate")}, {}),
            ({"certificate-authority-data": inline("\n")}, {}),
            ({"certificate-authority": "empty"}, {}),
            ({}, {"client-certificate": "missing", "client-key": "missing"}),
            ({}, {"client-certificate-data": inline("x"), "client-key-data": inline("y")}),
            ({}, {"client-certificate-data": inline("x")}),
            ({}, {"client-key-data": inline("y")}),
            ({}, {"client-key-data": "é"}),
        ],
    )
    def test_that_cannot_be_used_are_refused(self, file: Path, cluster: Document, user: Document) -> None:
        (file.parent / "empty").touch()
        with pytest.raises(ConfigError, match="certificate"):
            from_file(write(file, document(HTTPS | cluster, user)))

    def test_with_an_encrypted_key_are_refused_and_no_password_is_asked_for(
        self, file: Path, pair: tuple[str, str]
    ) -> None:
        key = serialization.load_pem_private_key(pair[1].encode(), None)
        locked = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
        user = {"client-certificate-data": inline(pair[0]), "client-key-data": inline(locked.decode())}
        with pytest.raises(ConfigError, match="certificate"):
            from_file(write(file, document(HTTPS, user)))


@pytest.mark.parametrize(
    ("cluster", "user", "remedy"),
    [
        ({}, {"exec": {"command": "login"}}, "'exec' is not supported yet; use a token"),
        ({}, {"auth-provider": {"name": "gcp"}}, "'auth-provider' is not supported yet; use a token"),
        ({"proxy-url": "http://127.0.0.1:3128"}, {}, "'proxy-url' is not supported yet; use a token"),
        ({"tls-server-name": "other"}, {}, "'tls-server-name' is not supported yet; use a token"),
        ({}, {"username": "anna", "password": "x"}, "'username' is not supported yet; use a token"),
        ({}, {"as": "somebody"}, "'as' is not supported yet; use a token"),
    ],
)
def test_what_we_cannot_do_is_refused_with_a_remedy(
    file: Path, cluster: Document, user: Document, remedy: str
) -> None:
    with pytest.raises(ConfigError, match=remedy):
        from_file(write(file, document(cluster, user)))


def without(*path: Any) -> Document:
    content = document()
    inner: Any = content
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return content


def with_value(value: Any, *path: Any) -> Document:
    content = document()
    inner: Any = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is not a kubeconfig"),
        ("just text", "is not a kubeconfig"),
        ("[]", "is not a kubeconfig"),
        ("a: [", "is not YAML: line 1"),
        ("a: !!python/object:os.system x", "is not YAML"),
        ("a: 2026-13-45", "is not YAML"),
        ("a: !!bool perhaps", "is not YAML"),
        ("a: \0", "is not YAML"),
        ("[" * 600, "is not YAML"),
        ("{}", "no current-context"),
        (with_value(7, "current-context"), "current-context"),
        (with_value("nowhere", "current-context"), "names the context 'nowhere', which is not in"),
        (without("contexts"), "names the context 'here'"),
        (without("users"), "names the user 'u', which is not in its users"),
        (with_value(None, "users"), "names the user 'u'"),
        (with_value(5, "users"), r"at `\$.users`"),
        (with_value({"u": {}}, "users"), r"at `\$.users`"),
        (with_value(["u"], "users"), r"at `\$.users"),
        (with_value("text", "users", 0, "user"), "user"),
        (with_value([1], "users", 0, "user"), "user"),
        (with_value([1], "contexts", 0, "context"), "context"),
        (with_value(None, "contexts", 0, "context"), "names the cluster ''"),
        (with_value(9, "contexts", 0, "context", "namespace"), "namespace"),
        (with_value(None, "clusters", 0, "cluster"), "no http"),
        (with_value(8001, "clusters", 0, "cluster", "server"), "server"),
        (with_value("ftp://x", "clusters", 0, "cluster", "server"), "no http"),
        (with_value(12345, "users", 0, "user", "token"), "token"),
        (with_value(["a"], "users", 0, "user", "tokenFile"), "tokenFile"),
        (with_value("two\nlines", "users", 0, "user", "token"), "characters that no token has"),
        (with_value("tökén", "users", 0, "user", "token"), "characters that no token has"),
        (with_value(b"bytes", "clusters", 0, "cluster", "certificate-authority-data"), "authority"),
    ],
)
def test_what_is_wrong_is_named_together_with_the_file(file: Path, content: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        from_file(write(file, content))
    assert str(caught.value).startswith(f"{file}: ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.integers() | st.text(max_size=3), inner),
    max_leaves=4,
)
PLACES = [
    ("current-context",),
    ("contexts",),
    ("contexts", 0),
    ("contexts", 0, "context"),
    ("clusters", 0, "cluster"),
    ("clusters", 0, "cluster", "server"),
    ("clusters", 0, "cluster", "certificate-authority"),
    ("clusters", 0, "cluster", "certificate-authority-data"),
    ("clusters", 0, "cluster", "insecure-skip-tls-verify"),
    ("users", 0),
    ("users", 0, "user"),
    ("users", 0, "user", "token"),
    ("users", 0, "user", "tokenFile"),
    ("users", 0, "user", "client-certificate"),
    ("users", 0, "user", "client-key-data"),
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.sampled_from(PLACES), value=JSON)
def test_whatever_stands_anywhere_no_other_error_comes_out(file: Path, place: Any, value: Any) -> None:
    content = copy.deepcopy(with_value(value, *place))
    try:
        from_file(write(file, content))
    except ConfigError:
        return


@pytest.mark.parametrize("text", [f"users:\n  token: {SECRET}: x\n", f'token: "{SECRET}\n', f"{SECRET}: [\n"])
def test_no_error_shows_a_secret(file: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_file(write(file, text))
    assert SECRET not in str(caught.value)


class TestTheFile:
    def test_that_is_missing_is_named_with_a_remedy(self, file: Path) -> None:
        with pytest.raises(ConfigError, match="no such file; name a kubeconfig with --kubeconfig"):
            from_file(file)

    def test_may_not_be_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read"):
            from_file(tmp_path)

    def test_may_not_be_binary(self, file: Path) -> None:
        file.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ConfigError):
            from_file(file)

    @pytest.mark.parametrize("name", ["~nobody-of-that-name/config", "a\0b"])
    def test_may_not_have_an_impossible_name(self, name: str) -> None:
        with pytest.raises(ConfigError):
            load(name)

    def test_that_is_named_comes_before_the_one_of_the_environment(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(write(file, document())))
        assert load(None).token == SECRET
        with pytest.raises(ConfigError, match="other"):
            load(str(file.parent / "other"))


class TestInAPod:
    @pytest.fixture
    def account(self, tmp_path: Path, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "ca.crt").write_text(pair[0])
        (tmp_path / "namespace").write_text("team\n")
        (tmp_path / "token").write_text(SECRET)
        monkeypatch.setattr(config, "IN_CLUSTER", tmp_path)
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "198.18.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
        return tmp_path

    def test_the_mounted_account_is_used(self, account: Path) -> None:
        found = load(None)
        assert (found.server, found.namespace) == ("https://198.18.0.1:6443", "team")
        assert found.token_file == account / "token"
        assert found.tls is not None

    @pytest.mark.usefixtures("account")
    def test_an_ipv6_address_is_bracketed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
        assert load(None).server == "https://[fd00::1]:6443"

    @pytest.mark.parametrize("name", ["ca.crt", "namespace"])
    def test_an_account_with_a_part_missing_is_refused(self, account: Path, name: str) -> None:
        (account / name).unlink()
        with pytest.raises(ConfigError, match="automountServiceAccountToken"):
            load(None)

    @pytest.mark.usefixtures("account")
    def test_a_file_that_is_named_comes_first(self, file: Path) -> None:
        assert load(str(write(file, document()))).server == "http://127.0.0.1:8001"
