"""Reads the keys of a bucket: the key of each configuration, its workspaces, and what is no state.

`backend "s3"` keeps the state of the workspace `default` at the key of its block, and that of another at
`<workspace_key_prefix>/<workspace>/<key>`. A bucket may also have folders that were copied from a disk.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "default"
"""The workspace that every configuration has. `cloud {}` refuses a workspace of this name."""

MAIN: Final = "main"
"""The new name of that workspace, in a configuration with several."""

_ON_DISK: Final = re.compile(r"((?:.*/)?)terraform\.tfstate\.d/([^/]+)/terraform\.tfstate", re.DOTALL)
"""The file of a workspace without a backend; that of `default` is `terraform.tfstate`."""


@dataclass(frozen=True, slots=True)
class Place:
    """The key of a state's configuration, and the state's workspace."""

    key: str
    workspace: str


def folder_of(options: Mapping[str, str]) -> str:
    """Return the folder of workspaces; empty if each workspace is a folder of the bucket itself.

    >>> folder_of({}), folder_of({"workspace_key_prefix": "x/"}), folder_of({"workspace_key_prefix": ""})
    ('env:', 'x', '')
    """
    return options.get("workspace_key_prefix", "env:").strip("/")


def path_of_workspaces(folder: str) -> str:
    """Return a pattern of the path of workspaces, which ends with a slash. Its group is the workspace."""
    return f"{re.escape(folder)}/([^/]+)/" if folder else "([^/]+)/"


def in_workspaces(folder: str) -> re.Pattern[str]:
    """Return a pattern of states in workspaces. Its groups are the workspace and the configuration's key."""
    return re.compile(f"{path_of_workspaces(folder)}(.+)", re.DOTALL)


def of_configuration(folder: str, key: str) -> re.Pattern[str]:
    """Return a pattern of the states of a configuration. Its group is the workspace; None for `default`."""
    return re.compile(f"(?:{path_of_workspaces(folder)})?{re.escape(key)}")


def places(keys: Collection[str], folder: str) -> dict[str, Place]:
    """Return the place of each key of a bucket.

    Without a folder for workspaces, `a/b` may be the workspace `a` of the key `b`, or a key. It is a
    workspace if the bucket also has the key `b`, or `b` in another workspace.

    >>> places(["net", "env:/prod/net"], "env:")["env:/prod/net"]
    Place(key='net', workspace='prod')
    >>> places(["net", "prod/net", "team/app"], "")["team/app"]
    Place(key='team/app', workspace='default')
    """
    of_workspace = in_workspaces(folder)
    shared = Counter(at[2] for key in keys if (at := of_workspace.fullmatch(key)))
    known = set(keys)
    found = {}
    for key in keys:
        found[key] = Place(key, DEFAULT)
        if at := _ON_DISK.fullmatch(key):
            found[key] = Place(f"{at[1]}terraform.tfstate", at[2])
        elif (at := of_workspace.fullmatch(key)) and (folder or at[2] in known or shared[at[2]] > 1):
            found[key] = Place(at[2], at[1])
    return found


def below(key: str, prefix: str) -> str | None:
    """Return a key without a prefix, which is a folder or a whole key; None if the key is not below it.

    >>> below("team/net.tfstate", "team"), below("team2/net.tfstate", "team"), below("a/b", "a/b")
    ('net.tfstate', None, 'b')
    """
    if key == prefix:
        return key.rpartition("/")[2]
    folder = f"{prefix}/" if prefix else ""
    return key.removeprefix(folder) if key.startswith(folder) else None


def configuration(path: str) -> str:
    """Return the name of a configuration, by the path of its state.

    >>> configuration("team/net.tfstate"), configuration("team/net/terraform.tfstate")
    ('team/net', 'team/net')
    """
    if not path.endswith(".tfstate"):
        return path
    return path.removesuffix(".tfstate").removesuffix("/terraform")


def tag(configuration: str) -> str:
    """Return the tag by which `cloud {}` finds the workspaces of a configuration.

    >>> tag("team/my net")
    'team-my-net'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "-", configuration)[:128]


def left_out(key: str) -> str:
    """Return why a key is no state of its own, as a sentence; empty if it may be one.

    >>> left_out("app/terraform.tfstate"), left_out("app/terraform.tfstate.backup")
    ('', 'a backup that Terraform made.')
    """
    if key.endswith(".backup"):
        return "a backup that Terraform made."
    if f"/{key}".endswith("/errored.tfstate"):
        return (
            "a state that Terraform could not store. If the stored state lacks resources of this file, first "
            "push the file to the source."
        )
    return ""
