# The operator. From the top of the repository:
#
#     docker build -t registry.baidubce.com/paddle-operator/controller:dev .
#
# There is no shell and no pip in the image, only Python, what requirements.lock pins and the package. BUILDER is
# any image with Python 3.11 and its venv module. BASE has that of Debian 12, /usr/bin/python3, and need not have more.
ARG BUILDER=python:3.11-slim-bookworm
ARG BASE=gcr.io/distroless/python3-debian12

FROM ${BUILDER} AS build
ENV PATH=/build/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
# Packages that `pip download` has put into the folder wheels are not fetched; with PIP_NO_INDEX=1 none are.
COPY requirements.lock requirements-build.lock wheels* ./
ARG PIP_NO_INDEX
# Nobody can write in a running image: byte code is made here, and later used without a look at the source.
ARG COMPILE="python3 -m compileall -q --invalidation-mode=unchecked-hash -p /opt/paddle-operator -s"
RUN python3 -m venv . \
 && pip install --require-hashes --find-links=. --requirement=requirements-build.lock \
 && pip install --require-hashes --find-links=. --requirement=requirements.lock --no-compile --target=/dependencies \
 && rm -r /dependencies/bin \
 && $COMPILE /dependencies /dependencies
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-index --no-deps --no-build-isolation --no-compile --target=/package . \
 && rm -r /package/bin \
 && $COMPILE /package /package

FROM ${BASE}
# From what seldom changes to what changes often: a new version of the operator is a new layer of less than 1 MB.
# Packages that were unpacked but not installed have no byte code.
RUN ["/usr/bin/python3", "-m", "compileall", "-qf", "--invalidation-mode=unchecked-hash", "/usr/lib/python3.11"]
# The group of a user is looked up here; one that is unknown would be in the group of root.
COPY images/operator/etc /etc
COPY --from=build /dependencies /opt/paddle-operator
COPY images/operator/manager /manager
COPY images/operator/paddle-operator /usr/local/bin/paddle-operator
COPY --from=build /package /opt/paddle-operator
USER 65532:65532
ENTRYPOINT ["/manager"]
