"""The blocks that `holdfast import rewrite` changes, and what it leaves to people."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from holdfast import names
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import layout
from holdfast_cli.importing.rewrite import Moved, Note, Rewritten, rewrite, rewrite_folder
from holdfast_cli.importing.sources import Kind
from tests.unit.test_cli_backend_config import PACKAGED, run_terraform
from tests.unit.test_printed_hcl import rejected

API: Final = "https://new.example.com"
SECRET: Final = "not-a-real-secret"
GITLAB: Final = "https://git.example.com/api/v4/projects"
CREDENTIALS: Final = (
    "# The credentials come from the environment:",
    "# TF_HTTP_USERNAME (the token's ID) and TF_HTTP_PASSWORD (its secret).",
    "# Keep them out of this file.",
)


def moved(kind: Kind, address: str, **states: str) -> Moved:
    """Return the states of a source, with the names as arguments of their identifiers."""
    return Moved(kind, address, {id_: names.parse(name) for id_, name in states.items()}, API)


S3: Final = moved(
    "s3",
    "s3://old/live",
    **{
        "live/net.tfstate": "net/prod",
        "live/app.tfstate": "app",
        "env:/dev/live/app.tfstate": "app/dev",
        "env:/eu/live/one.tfstate": "one/eu",
        "env:/eu/live/two.tfstate": "two/eu",
        "env:/us/live/two.tfstate": "two/us",
        "env:/eu/live/other.tfstate": "other/europe",
        "live/units/a/vpc/terraform.tfstate": "units/a/vpc",
        "live/units/b/terraform.tfstate": "units/b",
        "live/odd/a/terraform.tfstate": "odd/a",
        "live/odd/b/terraform.tfstate": "odd/c",
        "live/many/a/terraform.tfstate": "many/a",
        "env:/dev/live/many/a/terraform.tfstate": "many/a/dev",
    },
)
WITH_DEFAULT: Final = replace(
    S3,
    states={
        "live/three.tfstate": names.parse("three/main"),
        "env:/dev/live/three.tfstate": names.parse("three/dev"),
    },
    tags={names.parse("three/main"): ("three",), names.parse("three/dev"): ("three",)},
)
HTTP: Final = moved("http", "https://old.example.com/net", **{"https://old.example.com/net": "net/prod"})
GROUP: Final = moved("gitlab", "gitlab://git.example.com/team", **{"team/net#prod": "net/prod"})
HCP: Final = moved("hcp", "hcp://app.terraform.io/acme", **{"net-prod": "acme/net-prod", "dev": "acme/dev"})
RENAMED: Final = moved("hcp", "hcp://tfe.example.com/acme", prod="net/eu/prod", dev="net/dev", short="short")


def http(name: str, *, column: int = 0, indent: str = "  ") -> str:
    """Return the lines within a new backend "http", or within its object for Terragrunt."""
    lines = [
        f'address        = "{API}/states/{name}"',
        f'lock_address   = "{API}/locks/{name}"',
        'lock_method    = "PUT"',
        f'unlock_address = "{API}/unlocks/{name}"',
        'unlock_method  = "POST"',
        *CREDENTIALS,
    ]
    return "\n".join(f"{' ' * column}{indent}{line}" for line in lines)


def terraform(block: str) -> str:
    return f"terraform {{\n  {block}\n}}\n"


def backend(name: str) -> str:
    return terraform(f'backend "http" {{\n{http(name, column=2)}\n  }}')


def s3(key: str, more: str = "") -> str:
    return terraform(f'backend "s3" {{\n    bucket = "old"\n    key    = "{key}"{more}\n  }}')


def cloud(values: str, workspaces: str, kind: str = "cloud") -> str:
    return terraform(f"{kind} {{\n    {values}\n    workspaces {{\n      {workspaces}\n    }}\n  }}")


def remote_state(backend: str, config: str) -> str:
    return f"""\
remote_state {{
  backend  = "{backend}" # for all
  generate = {{ path = "backend.tf", if_exists = "overwrite" }}
  config = {{
{config}
  }}
}}
"""


KEY: Final = 'bucket = "old"\n    key = "{}"\n    region = "eu-central-1"'
UNIT: Final = "${path_relative_to_include()}"


def reader(workspace: str) -> str:
    return f"""\
data "terraform_remote_state" "x" {{
  backend = "s3"
  {workspace}
  config = {{
    {KEY.format("live/three.tfstate")}
  }}
}}
"""


CHANGED: Final[Mapping[str, tuple[Moved, str, str]]] = {
    "a key": (S3, s3("live/net.tfstate", f'\n    secret_key = "{SECRET}"'), backend("net/prod")),
    "the only workspace of a key, if it keeps its name": (
        S3,
        s3("live/one.tfstate"),
        terraform("""cloud {
    hostname     = "new.example.com"
    organization = "one"

    workspaces {
      name = "eu"
    }
    # The token comes from the environment,
    # as `holdfast token create` prints it:
    # TF_TOKEN_new_example_com.
    # Keep it out of this file.
  }"""),
    ),
    "the workspaces of a key, if they keep their names and have a tag in common": (
        replace(S3, tags={name: ("two", str(name)) for name in S3.states.values()}),
        s3("live/two.tfstate"),
        terraform("""cloud {
    hostname     = "new.example.com"
    organization = "two"

    workspaces {
      tags = ["two"]
    }
    # `terraform workspace select -or-create eu` selects the state
    # two/eu.
    # The token comes from the environment,
    # as `holdfast token create` prints it:
    # TF_TOKEN_new_example_com.
    # Keep it out of this file.
  }"""),
    ),
    "the workspace default among others, which gets the name that the plan gives it": (
        WITH_DEFAULT,
        s3("live/three.tfstate"),
        terraform("""cloud {
    hostname     = "new.example.com"
    organization = "three"

    workspaces {
      tags = ["three"]
    }
    # `terraform workspace select -or-create main` selects the state
    # three/main.
    # The token comes from the environment,
    # as `holdfast token create` prints it:
    # TF_TOKEN_new_example_com.
    # Keep it out of this file.
    # The workspace `default` is now `main`, also for terraform.workspace and TF_WORKSPACE.
  }"""),
    ),
    "a key whose workspaces are folders of the bucket": (
        replace(
            moved("s3", "s3://old", **{"dev/net": "net/dev", "team/dev/net": "team"}),
            folder=layout.folder_of({"workspace_key_prefix": ""}),
        ),
        s3("net", '\n    workspace_key_prefix = ""'),
        terraform("""cloud {
    hostname     = "new.example.com"
    organization = "net"

    workspaces {
      name = "dev"
    }
    # The token comes from the environment,
    # as `holdfast token create` prints it:
    # TF_TOKEN_new_example_com.
    # Keep it out of this file.
  }"""),
    ),
    "a key whose workspaces are below a folder that the plan has with a slash": (
        replace(
            moved("s3", "s3://old", **{"x/dev/net": "net/dev"}),
            folder=layout.folder_of({"workspace_key_prefix": "x/"}),
        ),
        s3("net", '\n    workspace_key_prefix = "x"'),
        terraform("""cloud {
    hostname     = "new.example.com"
    organization = "net"

    workspaces {
      name = "dev"
    }
    # The token comes from the environment,
    # as `holdfast token create` prints it:
    # TF_TOKEN_new_example_com.
    # Keep it out of this file.
  }"""),
    ),
    "an address": (
        HTTP,
        terraform(f'backend "http" {{\n    address = "{HTTP.address}"\n    password = "{SECRET}"\n  }}'),
        backend("net/prod"),
    ),
    "an address of GitLab": (
        GROUP,
        terraform(f'backend "http" {{\n    address = "{GITLAB}/team%2Fnet/terraform/state/prod"\n  }}'),
        backend("net/prod"),
    ),
    "a workspace, without a hostname": (
        HCP,
        cloud('organization = "acme"', 'name = "net-prod" # ours'),
        cloud('hostname     = "new.example.com"\n    organization = "acme"', 'name = "net-prod" # ours'),
    ),
    "a workspace with a new name, and a token": (
        RENAMED,
        cloud(
            f'hostname = "tfe.example.com"\n    organization = "acme"\n    token = "{SECRET}"',
            'name = "prod"',
        ),
        cloud(
            'hostname = "new.example.com"\n    organization = "net"\n'
            "    # The token comes from the environment.",
            'name = "eu:prod"',
        ),
    ),
    "workspaces by tags": (
        HCP,
        cloud('hostname = "app.terraform.io"\n    organization = "acme"', 'tags = ["net"]'),
        cloud('hostname = "new.example.com"\n    organization = "acme"', 'tags = ["net"]'),
    ),
    "workspaces by prefix": (
        HCP,
        cloud(
            'hostname = "app.terraform.io"\n    organization = "acme"', 'prefix = "net-"', 'backend "remote"'
        ),
        cloud(
            'hostname = "new.example.com"\n    organization = "acme"', 'prefix = "net-"', 'backend "remote"'
        ),
    ),
    "the units of Terragrunt": (
        S3,
        remote_state("s3", "    " + KEY.format(f"live/units/{UNIT}/terraform.tfstate")),
        remote_state("http", http(f"units/{UNIT}", column=2)),
    ),
    "a state of Terragrunt": (
        S3,
        remote_state("s3", "    " + KEY.format("live/net.tfstate")),
        remote_state("http", http("net/prod", column=2)),
    ),
}
"""The moved states, a text, and what becomes of it."""

MAINS: Final = {"the workspace default among others, which gets the name that the plan gives it": "main"}
"""The new name of the workspace `default` in these cases."""

OTHER: Final[Mapping[str, tuple[Moved, str]]] = {
    "another bucket": (S3, s3("live/net.tfstate").replace('"old"', '"else"')),
    "a key outside of the prefix": (S3, s3("test/net.tfstate")),
    "another type": (S3, terraform('backend "gcs" {\n    bucket = "old"\n  }')),
    "another server": (
        HTTP,
        terraform('backend "http" {\n    address = "https://else.example.com/net"\n  }'),
    ),
    "our own server": (moved("http", f"{API}/old", **{f"{API}/old": "app"}), backend("net/prod")),
    "another GitLab": (GROUP, terraform(f'backend "http" {{\n    address = "{GITLAB}s/1/state/prod"\n  }}')),
    "another host": (HCP, cloud('hostname = "tfe.example.com"\n organization = "acme"', 'name = "dev"')),
    "another organization": (HCP, cloud('organization = "else"', 'name = "dev"')),
    "a comment": (S3, "\n".join(f"# {line}" for line in s3("live/net.tfstate").splitlines())),
    "a text": (S3, f"locals {{\n  text = <<-EOT\n{s3('live/net.tfstate')}  EOT\n}}\n"),
}

KEPT: Final[Mapping[str, tuple[Moved, str, str]]] = {
    "workspaces": (S3, s3("live/app.tfstate"), "app (default), app/dev (dev). `cloud` keeps"),
    "a workspace that would still be named default": (
        replace(
            WITH_DEFAULT,
            states={
                "live/three.tfstate": names.parse("three/default"),
                "env:/dev/live/three.tfstate": names.parse("three/dev"),
            },
            tags={names.parse("three/default"): ("three",), names.parse("three/dev"): ("three",)},
        ),
        s3("live/three.tfstate"),
        "such as a-b/dev, and the workspace 'default' gets another name. Make a plan",
    ),
    "a workspace without a name": (
        replace(S3, left=("env:/ap/live/two.tfstate",)),
        s3("live/two.tfstate"),
        "the plan has no name for env:/ap/live/two.tfstate",
    ),
    "workspaces with their names": (
        S3,
        s3("live/two.tfstate"),
        "are now two/eu (eu), two/us (us). `cloud` keeps",
    ),
    "a workspace with a new name": (S3, s3("live/other.tfstate"), "are now other/europe (eu)"),
    "another prefix of workspaces": (
        S3,
        s3("live/net.tfstate", '\n    workspace_key_prefix = "ws"'),
        "the workspace_key_prefix of the block is not 'env:', which is that of the plan. Make a plan with "
        "the",
    ),
    "a unit with workspaces": (
        S3,
        remote_state("s3", "    " + KEY.format(f"live/many/{UNIT}/terraform.tfstate")),
        "cannot give all new names, which are many/a (a), many/a/dev (env:/dev/a)",
    ),
    "an unknown key": (
        S3,
        s3("live/none.tfstate"),
        "the plan does not import the state of this block (the key live/none.tfstate). Import that state "
        "with a plan first",
    ),
    "an empty block": (
        S3,
        terraform('backend "s3" {}'),
        "the bucket is not in the block. If -backend-conf",
    ),
    "no key": (S3, terraform('backend "s3" {\n    bucket = "old"\n  }'), "the key is not in the block"),
    "a key with an expression": (S3, s3("live/${var.name}.tfstate"), "the key is an expression"),
    "an empty http": (GROUP, terraform('backend "http" {}'), "the address is not in the block"),
    "an unknown address": (
        HTTP,
        terraform('backend "http" {\n    address = "https://old.example.com/app"\n  }'),
        "the state of this block (https://old.example.com/app)",
    ),
    "a project's number": (
        GROUP,
        terraform(f'backend "http" {{\n    address = "{GITLAB}/42/terraform/state/prod"\n  }}'),
        "the project ID 42, but the plan has project paths. The state may be net/prod (team/net#prod)",
    ),
    "tags over two organizations": (
        RENAMED,
        cloud('hostname = "tfe.example.com"\n    organization = "acme"', 'tags = ["a"]'),
        "net/eu/prod (prod), net/dev (dev), short (short). A state that `cloud` uses",
    ),
    "a short name": (
        RENAMED,
        cloud('hostname = "tfe.example.com"\n    organization = "acme"', 'name = "short"'),
        "A state that `cloud` uses must have a name with a '/'",
    ),
    "no hostname, which may be a variable": (
        RENAMED,
        cloud('organization = "acme"', 'name = "dev"'),
        "the hostname is not in the block",
    ),
    "a project of HCP": (
        HCP,
        cloud('organization = "acme"', 'name = "dev"\n      project = "x"'),
        "remove `project`",
    ),
    "one line": (HCP, terraform('cloud { organization = "acme" }'), "the block is on one line"),
    "an unknown workspace": (
        HCP,
        cloud('organization = "acme"', 'name = "x"'),
        "this block (the workspace x)",
    ),
    "units without a rule": (
        S3,
        remote_state("s3", "    " + KEY.format(f"live/odd/{UNIT}/terraform.tfstate")),
        "cannot give all new names, which are odd/a (a), odd/c (b)",
    ),
    "units with other expressions": (
        S3,
        remote_state("s3", "    " + KEY.format(f"${{local.top}}/{UNIT}/terraform.tfstate")),
        "the key is an expression",
    ),
    "unknown units": (
        S3,
        remote_state("s3", "    " + KEY.format(f"live/none/{UNIT}/x")),
        "the plan does not import the state of this block (an address such as ",
    ),
    "a generated backend": (
        S3,
        f'generate "backend" {{\n  contents = <<EOT\n{s3("live/net.tfstate")}EOT\n}}\n',
        "the block writes a file with a backend",
    ),
    "a reader": (
        S3,
        'data "terraform_remote_state" "net" {\n  backend = "s3"\n  config = {\n    '
        f"{KEY.format('live/net.tfstate')}\n  }}\n}}\n",
        "the block reads the old state, which is now net/prod. Replace it with the output of `holdfast "
        "backend-config net/prod",
    ),
    "a reader of a workspace": (
        WITH_DEFAULT,
        reader('workspace = "dev"'),
        "the block reads the old state, which is now three/dev. Replace it with the output of `holdfast "
        "backend-config three",
    ),
    "a reader of the workspace default": (
        WITH_DEFAULT,
        reader(""),
        "the block reads the old state, which is now three/main. Replace it with the output of `holdfast "
        "backend-config thr",
    ),
    "a reader of a workspace by an expression": (
        WITH_DEFAULT,
        reader("workspace = terraform.workspace"),
        "the block reads one of the old states, which are now three/main (default), three/dev (dev). Replace "
        "it with",
    ),
    "a reader of a workspace that does not move": (
        WITH_DEFAULT,
        reader('workspace = "qa"'),
        "the plan has no state of the workspace qa. For this block, the plan "
        "has three/main (default), three/dev (dev). First import the state",
    ),
    "a reader of a workspace of HCP by its prefix": (
        HCP,
        'data "terraform_remote_state" "net" {\n  backend   = "remote"\n  workspace = "prod"\n  config = {\n'
        '    hostname = "app.terraform.io"\n    organization = "acme"\n    workspaces = { prefix = "net-" }\n'
        "  }\n}\n",
        "the block reads the old state, which is now acme/net-prod. Replace it with",
    ),
    "a broken file": (S3, terraform('backend "s3" {\n    key = "'), "the file cannot be parsed: `terraform"),
    "HCL that is not read": (
        S3,
        f"é = 1\n{s3('live/net.tfstate')}",
        "says what is wrong. If it reports no error, change the block by hand",
    ),
}
"""The moved states, a text that stays, and what the note on it says."""


@pytest.mark.parametrize("case", CHANGED)
def test_a_block_of_a_moved_state_leads_to_its_new_name(case: str) -> None:
    states, before, after = CHANGED[case]

    assert rewrite("main.tf", before, states) == Rewritten(after, [], MAINS.get(case, ""))


@pytest.mark.parametrize("case", OTHER)
def test_what_is_not_of_the_source_stays_without_a_word(case: str) -> None:
    states, text = OTHER[case]

    assert rewrite("app/main.tf", text, states) == Rewritten(text)


@pytest.mark.parametrize("case", KEPT)
def test_what_people_decide_stays_and_is_a_note_with_its_line(case: str) -> None:
    states, text, says = KEPT[case]
    text = f"# first\n{text}"

    after = rewrite("app/main.tf", text, states)

    [note] = after.notes
    assert after.text == text
    assert says in note.text
    first = text.splitlines()[note.line - 1]
    assert note.line == 1 or first.split()[0] in ("backend", "cloud", "remote_state", "data", "generate")
    assert str(note).startswith(f"app/main.tf:{note.line}: ")


def test_no_secret_is_in_a_new_text_or_a_note() -> None:
    everything = [*((one, text) for one, text, _ in (*CHANGED.values(), *KEPT.values())), *OTHER.values()]
    assert sum(SECRET in text for _, text in everything) == 3

    results = [rewrite("main.tf", text, one) for one, text in everything]

    assert [result for result in results if SECRET in str(result)] == []


AROUND: Final = r"""# terraform { backend "s3" { bucket = "old" } }
/* " { ${ */ locals {
  quoted  = "a \" } ${join("}", [for k, v in { x = "\"{" } : "${k}"])} %{if v == "}"}}%{endif}" // {
  heredoc = <<-EOT
    terraform { backend "s3" {
    ${x["}"]} "
    EOT
  empty   = <<E
E
  list    =   [1,2 , { a : "}", "b" = (1 > 0 ? "{" : "}") }]
}
terraform   {
  required_version =   ">= 1.1"
  TAB BLOCK  # a remark { "
}"""
"""Everything that is no block and looks like it."""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_all_outside_of_a_block_stays_byte_for_byte(line_end: str) -> None:
    def around(block: str) -> str:
        return "\ufeff" + AROUND.replace("TAB BLOCK", f"\t{block}").replace("\n", line_end)

    before = around('backend   "s3" { # old\n\t  bucket = "old"\n\t  key= "live/net.tfstate" /* } */\n\t}')
    after = around(f'backend "http" {{\n{http("net/prod")}\n}}'.replace("\n", "\n  \t"))

    assert rewrite("main.tf", before, S3) == Rewritten(after, [])


# --- folders ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    block = s3("live/net.tfstate")
    files = {
        "unix/main.tf": block,
        "unix/no end.tofu": block.rstrip(),
        "windows/main.tf": block.replace("\n", "\r\n"),
        "root.hcl": CHANGED["the units of Terragrunt"][1],
        "other.tf": "# nothing\n",
        "j/x.tf.json": '{\n"terraform": {"backend": {"s3": {"bucket": "old", "key": "live/net.tfstate"}}}}',
        ".terraform/modules/x/main.tf": block,
        ".terragrunt-cache/x/main.tf": block,
        ".terraform.lock.hcl": block,
        "latin.tf": "# \xe9",
    }
    for name, text in files.items():
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    (tmp_path / "all/unix/link.tf").symlink_to("main.tf")
    return tmp_path / "all"


@pytest.mark.parametrize("tool", [["git", "apply"], ["patch", "-p1", "--binary"]], ids=lambda tool: tool[0])
def test_the_diff_of_a_folder_is_applied_and_then_empty(folder: Path, tool: list[str]) -> None:
    before = {
        path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file() and not path.is_symlink()
    }
    notes = [
        Note("latin.tf", 1, "the file cannot be read, or is not UTF-8."),
        Note(
            "j/x.tf.json",
            2,
            "a backend in JSON: change the block by hand. `holdfast backend-config STATE` prints the new "
            "arguments.",
        ),
    ]

    diff, said = rewrite_folder(folder, S3)

    assert said == notes
    assert {path: path.read_bytes() for path in before} == before
    if not shutil.which(tool[0]):
        pytest.skip(f"{tool[0]} is not installed")
    subprocess.run(tool, cwd=folder, input=diff.encode(), check=True, capture_output=True)
    new = backend("net/prod")
    assert {name: (folder / name).read_bytes().decode() for name in ("unix/main.tf", "unix/no end.tofu")} == {
        "unix/main.tf": new,
        "unix/no end.tofu": new.rstrip(),
    }
    assert (folder / "windows/main.tf").read_bytes() == new.replace("\n", "\r\n").encode()
    changed = {str(path.relative_to(folder)) for path, text in before.items() if path.read_bytes() != text}
    assert changed == {"unix/main.tf", "unix/no end.tofu", "windows/main.tf", "root.hcl"}
    assert rewrite_folder(folder, S3) == ("", notes)


def test_each_use_of_terraform_workspace_beside_a_block_that_renames_default_is_named(tmp_path: Path) -> None:
    files = {
        "app/main.tf": s3("live/three.tfstate"),
        "app/locals.tf": 'locals {\n  # terraform.workspace\n  name = "app-${terraform.workspace}"\n}\n',
        "other/main.tf": 'locals {\n  name = "app-${terraform.workspace}"\n}\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    diff, notes = rewrite_folder(tmp_path, WITH_DEFAULT)

    assert "+++ b/app/main.tf" in diff
    assert [str(note) for note in notes] == [
        "app/locals.tf:3: terraform.workspace is now 'main', not 'default'. To keep its old value, "
        'write (terraform.workspace == "main" ? "default" : terraform.workspace).'
    ]
    for name in ("app/main.tf", "other/main.tf"):  # a block that renames nothing
        (tmp_path / name).write_text(s3("live/net.tfstate"))
    assert rewrite_folder(tmp_path, S3)[1] == []


def test_a_folder_that_cannot_be_read_is_an_error_and_no_empty_diff(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="none cannot be read: "):
        rewrite_folder(tmp_path / "none", S3)


# --- a real Terraform ---------------------------------------------------------------------------------


def test_a_real_terraform_parses_all_new_texts(tmp_path: Path) -> None:
    for number, (_, _, after) in enumerate(CHANGED.values()):
        (tmp_path / f"{number}.tf").write_text(after)
    (tmp_path / "around.tf").write_text(AROUND.replace("TAB BLOCK", "# "))

    assert run_terraform(PACKAGED, tmp_path, "fmt", "-list=false", "-write=false").stderr == ""


@pytest.mark.parametrize(
    "case", ["a key", "the only workspace of a key, if it keeps its name", "workspaces by prefix"]
)
def test_a_real_terraform_knows_every_argument_of_a_new_block(tmp_path: Path, case: str) -> None:
    assert rejected(CHANGED[case][2], tmp_path) == ""
