"""The states of a project of GitLab, or of all projects of a group.

See https://docs.gitlab.com/user/infrastructure/iac/terraform_state/ and, for what these pages leave out,
`lib/api/terraform/` and `app/graphql/types/terraform/` in GitLab's sources.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.importing.part import Part
from holdfast_cli.importing.remote import NO_SEGMENTS, Remote, host_and_segments
from holdfast_cli.importing.source import AT_ONCE, OldLock, OldState, PlainSource, Settings, refusal
from holdfast_cli.terminal.output import plain

_TOKEN: Final = "GITLAB_TOKEN"  # noqa: S105 the name of a variable
_FORM: Final = "gitlab://HOST/GROUP or gitlab://HOST/GROUP/PROJECT"

_PAGE: Final = "pageInfo { endCursor hasNextPage }"
_PROJECTS: Final = (
    "query($path: ID!, $after: String) { project(fullPath: $path) { fullPath } group(fullPath: $path) "
    f"{{ projects(includeSubgroups: true, after: $after) {{ nodes {{ fullPath }} {_PAGE} }} }} }}"
)
_STATES: Final = (
    "query($path: ID!, $after: String) { project(fullPath: $path) "
    f"{{ terraformStates(after: $after) {{ nodes {{ name }} {_PAGE} }} }} }}"
)


class GitLab(PlainSource):
    """The source of `import` for `gitlab://`. The ID of a state is `<path of its project>#<its name>`.

    Projects whose states the token may not read are, for GitLab's API, projects without states.
    """

    def __init__(self, address: str, remote: Remote) -> None:
        self.address = address
        self._host, segments = host_and_segments(address, _FORM, _TOKEN)
        self._path = "/".join(segments)
        self._remote = remote

    def states(self) -> Iterator[OldState]:
        projects = sorted(self._projects())
        with ThreadPoolExecutor(AT_ONCE) as threads:
            names = threads.map(lambda project: list(self._names(project)), projects)
            found = [(project, name) for project, some in zip(projects, names, strict=True) for name in some]
        paths = [(f"{project}/{name}"[len(self._path) + 1 :], f"{project}#{name}") for project, name in found]
        for path, state in sorted(paths):
            yield OldState(state, path)

    def covers(self, state: str) -> bool:
        project, _, name = state.partition("#")
        return f"{project}/".startswith(f"{self._path}/") and name not in NO_SEGMENTS

    def _projects(self) -> Iterator[str]:
        """Yield the project of the address, or the projects of its group."""
        ask = partial(self._query, f"The group {self._path}", _PROJECTS, path=self._path)
        page = ask()
        if page["project"].members():
            yield self._path
            return
        if not page["group"].members():
            raise CommandError(
                f"{self.address}: the group or project does not exist, or {_TOKEN} may not see it. Check the "
                "address and the token."
            )
        what = f"the projects of {self._path}"
        for node in _all(what, lambda after: ask(after=after)["group"]["projects"]):
            yield node["fullPath"].name()

    def _names(self, project: str) -> Iterator[str]:
        ask = partial(self._query, f"The project {project}", _STATES, path=project)
        what = f"the states of {project}"
        for node in _all(what, lambda after: ask(after=after)["project"]["terraformStates"]):
            yield node["name"].name()

    def read(self, state: str) -> bytes | None:
        expects = (HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND)
        response = self._remote.ask("GET", self._url(state, ""), state, expects)
        return None if response.status == HTTPStatus.NOT_FOUND else response.body

    def lock(self, state: str, lock: OldLock) -> None:
        # GitLab requires all seven fields.
        body = json.dumps(lock.info.for_client()).encode()
        expects = (HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.LOCKED)
        response = self._remote.ask("POST", self._url(state, "/lock"), state, expects, body=body)
        if response.status != HTTPStatus.OK and response.text("ID") != lock.info.id:
            # The other fields of the response are those of this request.
            known = {"ID": response.text("ID"), "Who": response.text("Who")}
            raise refusal(state, LockInfo(known) if known["ID"] else None)

    def unlock(self, state: str, lock: OldLock) -> None:
        # Without an ID it would be a force-unlock. With one, 409 is the response also if nothing is locked.
        url = f"{self._url(state, '/lock')}?{urlencode({'ID': lock.info.id})}"
        body = json.dumps(lock.info.for_client()).encode()
        self._remote.ask("DELETE", url, state, (HTTPStatus.OK, HTTPStatus.CONFLICT), body=body)

    def stopped_by_lock(self) -> tuple[str, str]:
        # GitLab refuses every write of a locked state without the lock's ID.
        return "every client", "force-unlock"

    def _url(self, state: str, rest: str) -> str:
        project, _, name = state.partition("#")
        return f"{self._host}/api/v4/projects/{quote(project, '')}/terraform/state/{quote(name, '')}{rest}"

    def _query(self, what: str, query: str, **variables: str | None) -> Part:
        body = json.dumps({"query": query, "variables": variables}).encode()
        url = f"{self._host}/api/graphql"
        response = self._remote.ask("POST", url, what, (HTTPStatus.OK,), body=body)
        document = Part(response.json(), f"{what}: {self._host}")
        if errors := document["errors"].parts():
            said = plain(errors[0]["message"].text()).rstrip(".")
            raise CommandError(
                f"{what}: GitLab rejects the query: {said}. Check the token, and GitLab's version."
            )
        return document["data"]


def open_gitlab(settings: Settings, environment: Mapping[str, str] = os.environ) -> GitLab:
    """Return the source of a group or a project, with the token of the environment."""
    host_and_segments(settings.addresses[0], _FORM, _TOKEN)  # first, because it may say more
    if not (token := environment.get(_TOKEN)):
        raise UsageError(f"{_TOKEN} is not set: create an access token with the scope 'api', and export it.")
    needs = f"{_TOKEN} has the scope 'api', and that its user has the role Maintainer, which may lock states"
    return GitLab(settings.addresses[0], Remote({"PRIVATE-TOKEN": token}, needs))


def _all(what: str, connection: Callable[[str | None], Part]) -> Iterator[Part]:
    """Yield the nodes of all pages of a connection, which is a function of the cursor.

    The first page may be null, if the token may not see the connection; a later one is a list that was cut.
    """
    page, after = connection(None), ""
    while True:
        yield from page["nodes"].parts()
        info = page["pageInfo"]
        if not info["hasNextPage"].value:
            return
        before, after = after, info["endCursor"].text()
        if after and after != before:
            page = connection(after)
        if not after or after == before or page.value is None:
            raise CommandError(f"The list of {what} ends before its last page; run the command again.")
