"""Every block of the documents that says where a state is works, with every installed Terraform.

The blocks come from the pages themselves, out of fenced text, sentences and tables, and from what
`holdfast backend-config` prints. Each is completed to a configuration with the deployed API's address and an
organization of its own. A block that this file cannot complete, or an argument in a sentence, fails.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from local_aws.terraform import Client, Product
from tests.support import documents, hcl
from tests.support.pages import page, text
from tests.support.project import NewProject, Project, backend
from tests.support.team import Team

HEAD: Final = re.compile(
    r"(?:terraform|cloud|workspaces|remote_state|backend|data)"
    r'(?:\s+"[^"\s]*")*\s*\{'
)
"""The beginning of a block that says where a state is. Blocks of the CLI configuration do not."""
OF_TERRAGRUNT: Final = re.compile(r'backend = ("\w+")\s+config = \{(.*?)^  \}', re.DOTALL | re.MULTILINE)
NEEDS: Final = re.compile(r"needs Terraform (\d+)\.(\d+) or later")
ADDRESS: Final = re.compile(r'"[^"\n]*/(states|locks|unlocks|outputs)/[^"\n]*"')
ASSIGNMENT: Final = re.compile(r'`((\w+) = (?:[\[{"][^`]*|true|false|\d+))`')
"""An argument with a value in a sentence. An expression such as `local.bucket` is no value of a backend."""
SENTENCES: Final = {
    'unlock_method = "DELETE"': """
terraform {
  backend "http" {
    address        = "/states/network/prod"
    lock_address   = "/locks/network/prod"
    lock_method    = "PUT"
    unlock_address = "/locks/network/prod"
    unlock_method  = "DELETE"
  }
}
""",
    'backend = "remote"': """
data "terraform_remote_state" "network_prod" {
  backend = "remote"
  config = {
    hostname     = ""
    organization = ""
    workspaces   = { name = "prod" }
  }
}
""",
}
"""The blocks of the arguments that sentences name, and that no block of the documents has."""
LOCAL: Final = "use_path_style skip_credentials_validation skip_requesting_account_id skip_metadata_api_check"
"""The arguments that `backend "s3"` needs for the local AWS."""
MAIN: Final = """
resource "terraform_data" "apple" { input = "red" }
output "colour" { value = terraform_data.apple.output }
"""


@dataclass(frozen=True)
class Block:
    """A block, with the text of its first line before it and behind it."""

    text: str
    before: str = ""
    behind: str = ""

    def whole(self) -> str:
        """Return a configuration with this block."""
        head = self.text.partition("{")[0].split()
        match head:
            case ["terraform"]:
                return self.text
            case ["data", '"terraform_remote_state"', name]:
                read = f"data.terraform_remote_state.{name}.outputs.content".replace('"', "")
                return f'{self.text}\noutput "read" {{ value = {read} }}'
            case ["cloud"] | ["backend", _]:
                return f"terraform {{\n{self.text}\n}}"
            case ["workspaces"]:
                around = 'backend "remote"' if '`backend "remote"`' in self.before else "cloud"
                return Block(f'{around} {{\nhostname = ""\norganization = ""\n{self.text}\n}}').whole()
            case ["remote_state"]:  # Terragrunt writes a backend block with this content
                [(kind, content)] = OF_TERRAGRUNT.findall(self.text)
                return Block(f"backend {kind} {{{content}}}").whole()
            case _:
                raise AssertionError(f"It is not known how to run the block {' '.join(head)}.")

    def at(self, address: str, organization: str, bucket: str) -> str:
        """Return the configuration for an API, with names in an organization, and for a bucket."""
        host = address.partition("://")[2]
        found = ADDRESS.sub(rf'"{address}/\1/{organization}/prod"', self.whole())
        for argument, value in {
            "hostname": host,
            "organization": organization,
            "bucket": bucket,
            "key": f"states/{organization}/prod.tfstate",
            "region": "us-east-1",
        }.items():
            found = re.sub(rf'(\b{argument}\s*= )"[^"]*"', rf'\1"{value}"', found)
        arguments = "".join(f"{argument} = true\n" for argument in LOCAL.split())
        return re.sub(r'backend "s3" \{\n', rf"\g<0>{arguments}", found)

    def runs_with(self, client: Client) -> bool:
        """Return whether the line says that the block works with a client."""
        needed = NEEDS.search(self.behind)
        if needed is None:
            return True
        oldest = int(needed[1]), int(needed[2])
        return client.product is Product.TERRAFORM and client.version[:2] >= oldest


def blocks(whole: str) -> Iterator[Block]:
    """Yield the blocks of a text. `cloud {}` without content is the name of the protocol."""
    lines = whole.splitlines()
    for where, found in hcl.pieces("", whole):
        if HEAD.match(found) and found != "cloud {}":
            before, _, behind = lines[int(where.removeprefix(":")) - 1].partition(found.splitlines()[0])
            yield Block(hcl.without_comments(found), before, behind)


def by_content(found: Iterator[Block]) -> dict[str, Block]:
    """Return blocks by what tells them apart, which addresses, names and spaces do not."""
    return {re.sub(r"[\s{}]+", " ", block.at("a://b", "c", "d")).strip(): block for block in found}


EMPTY_HTTP: Final = 'terraform backend "http"'
DOCUMENTED: Final = by_content(block for path in hcl.PAGES for block in blocks(text(path)))


def run(
    block: Block, team: Team, organization: str, new_project: NewProject, *init: str, **environment: str
) -> None:
    """Initialize a project with the block, plan, and apply unless the block has no lock."""
    configuration = block.at(team.gateway.address, organization, team.bucket)
    project = new_project(team, None, team.token("maintainer"), main=MAIN, backend=configuration)
    project.environment.update(environment)
    if not block.runs_with(project.terraform.client):
        project.refused("init")
    elif "terraform_remote_state" in configuration:
        team.write(f"{organization}/prod", documents.state(1, content="red"))
        project.ok("init")
        project.ok("apply", "-auto-approve")
        assert json.loads(project.ok("output", "-json").out)["read"]["value"] == "red"
    elif re.search(r'\b(cloud|backend "remote") \{', configuration):
        run_in_workspace(project, team, organization, configuration)
    else:
        if 'backend "s3"' in configuration:
            project.environment.update(team.environment)
        project.ok("init", *init)
        if re.search(r"\n\s*address\b", configuration) and "lock_address" not in configuration:
            assert project.run("plan", "-detailed-exitcode").code == 2
        else:
            apply(project, team, organization)


def run_in_workspace(project: Project, team: Team, organization: str, configuration: str) -> None:
    """Run a block that selects workspaces, beside a workspace that it does not select.

    The other workspace has the same keys with other values, and of a list of tags all but the first.
    """
    writer = team.cloud_client("writer")
    assert writer.create(f"{organization}/other").status == 201
    keys = re.findall(r"(\w+)\s*= ", configuration)
    keys += [key for tags in re.findall(r"\[(.*)\]", configuration) for key in re.findall(r"\w+", tags)[1:]]
    tags = [{"type": "tag-bindings", "attributes": {"key": key, "value": "other"}} for key in keys]
    path = f"workspaces/{writer.open(f'{organization}/other')}/tag-bindings"
    assert writer.call("PATCH", path, {"data": tags}).status == 200
    began = project.run("init", answers="prod\n")
    if "No existing workspaces" in began.text:  # `backend "remote"` asks for none
        project.ok("workspace", "new", "prod")
    else:
        assert began.code == 0, began.text
    apply(project, team, organization)
    if re.search(r"\b(tags|prefix)\b", configuration):  # else the block names a workspace
        [selected] = project.ok("workspace", "list").out.replace("*", "").split()
        assert selected == project.ok("workspace", "show").out.strip() != "other"


def apply(project: Project, team: Team, organization: str) -> None:
    project.ok("apply", "-auto-approve")
    assert project.run("plan", "-detailed-exitcode").code == 0
    listed = team.s3.list_objects_v2(Bucket=team.bucket, Prefix=f"states/{organization}/")["Contents"]
    [key] = [found["Key"] for found in listed]  # and no lock
    assert b"terraform_data" in (team.object(key) or b"")


@pytest.fixture
def organization(state: str) -> str:
    """An organization that nobody has used."""
    return state.partition("/")[2]


@pytest.mark.parametrize("content", DOCUMENTED)
def test_a_block_of_the_documents_works(
    strict: Team, loose: Team, organization: str, new_project: NewProject, tmp_path: Path, content: str
) -> None:
    team = loose if 'backend "s3"' in content else strict  # it has `native_clients`
    init = []
    if content == EMPTY_HTTP:
        file = tmp_path / "prod.tfbackend"
        file.write_text(backend(team, f"{organization}/prod", "--tfbackend"))
        init = [f"-backend-config={file}"]
    run(DOCUMENTED[content], team, organization, new_project, *init)


@pytest.mark.parametrize("form", hcl.forms(), ids=" ".join)
def test_what_backend_config_prints_works(
    strict: Team, organization: str, new_project: NewProject, tmp_path: Path, form: list[str]
) -> None:
    printed = backend(strict, f"{organization}/prod", *form)
    found = by_content(block for shown in (printed, hcl.uncommented(printed)) for block in blocks(shown))
    for content in found.keys() - DOCUMENTED.keys():
        run(found[content], strict, organization, new_project)
    if found.keys() <= {EMPTY_HTTP}:  # then what it prints completes the empty block
        file, empty = tmp_path / "printed", DOCUMENTED[EMPTY_HTTP]
        file.write_text(printed)
        exports = dict(re.findall(r'^export (\w+)="?(.*?)"?$', printed, re.MULTILINE))
        init = [] if exports else [f"-backend-config={file}"]
        run(empty, strict, organization, new_project, *init, **exports)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_an_argument_in_a_sentence_works(
    strict: Team, organization: str, new_project: NewProject, sentence: str
) -> None:
    [block] = blocks(SENTENCES[sentence])
    run(block, strict, organization, new_project)


def test_every_argument_in_a_sentence_is_tried() -> None:
    arguments = {name for content in DOCUMENTED for name in re.findall(r"(\w+) = ", content)}
    settings = set(re.findall(r"^\| `([\w.]+)`", text(page("settings.md")), re.MULTILINE))
    named = {
        assignment
        for path in hcl.PAGES
        for assignment, name in ASSIGNMENT.findall(text(path))
        if name in arguments - settings and not any(assignment in content for content in DOCUMENTED)
    }
    assert named == SENTENCES.keys()
