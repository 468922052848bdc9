"""The fake kubelet's config maps: those that exist, and what a pod's containers get from them."""

from dataclasses import dataclass

import msgspec

from testbed.node_client import ApiClient, ApiError
from testbed.node_pods import ConfigError, ConfigMap, Downward, Pod, environment, maps_of

_decoder = msgspec.json.Decoder(ConfigMap)


@dataclass(frozen=True, slots=True)
class Look:
    """The environment of each container by its name, and in the pod's order what each lacks, if anything."""

    variables: dict[str, dict[str, str]]
    problems: list[str | None]


class ConfigMaps:
    """Fed by a watch; see Follower for `replace` and `apply`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], dict[str, str]] = {}

    def replace(self, maps: list[ConfigMap]) -> None:
        self._known = {each.key: each.data for each in maps}

    def apply(self, change: str, config_map: ConfigMap) -> None:
        if change == "DELETED":
            self._known.pop(config_map.key, None)
        else:
            self._known[config_map.key] = config_map.data

    async def of_pod(self, pod: Pod) -> dict[str, dict[str, str]]:
        """All maps that the pod's environment mentions and that exist, by name."""
        names = {name for container in pod.containers for name in maps_of(container)}
        return {name: data for name in sorted(names) if (data := await self._get(pod, name)) is not None}

    async def _get(self, pod: Pod, name: str) -> dict[str, str] | None:
        """The watch may lag behind the pod that mentions the map: what it lacks is asked of the server."""
        namespace = pod.metadata.namespace
        if (data := self._known.get((namespace, name))) is not None:
            return data
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        status, body = await self._client.send("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise ApiError(status, path)
        return _decoder.decode(body).data


def look(downward: Downward, maps: dict[str, dict[str, str]]) -> Look:
    variables: dict[str, dict[str, str]] = {}
    problems: list[str | None] = []
    for container in downward.pod.containers:
        try:
            variables[container.name] = environment(container, downward, maps)
            problems.append(None)
        except ConfigError as error:
            problems.append(str(error))
    return Look(variables, problems)


def denied_look(downward: Downward, name: str) -> Look:
    """What the node authorizer leaves of a look at a map that it does not yet know to be the pod's."""
    user = f'User "system:node:{downward.node}"'
    denial = f'configmaps "{name}" is forbidden: {user} cannot get resource "configmaps" in API group ""'
    return Look({}, [denial if name in maps_of(each) else None for each in downward.pod.containers])
