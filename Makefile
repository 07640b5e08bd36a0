# From a checkout, Python 3.11 or newer and GNU make to a trained agent: `make train`.
#
# Everything is installed into $(VENV). pip's own variables are passed through. On Linux its
# default index has torch with CUDA (several GB); for the CPU build (200 MB):
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make train

PYTHON ?=
VENV ?= .venv
CONFIG ?= configs/cabra.yaml
DEALS ?= 16384
ARGS ?=
ifndef RUN
RUN := runs/$(basename $(notdir $(CONFIG)))-$(shell date +%Y%m%d-%H%M%S)
endif

BIN := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --no-input
TRAIN = $(BIN)/python train.py $(CONFIG) --run $(RUN) $(ARGS)
EVALUATE = $(BIN)/domino evaluate $(RUN) random heaviest --deals $(DEALS)
BENCH = $(BIN)/python -m benchmarks $(ARGS)

.PHONY: help train test lint format bench clean

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 8
	@echo 'Options, for example: make train ARGS="--minutes 1" CONFIG=configs/cabra.yaml PYTHON=python3.12'

train: $(VENV)/.installed-train ## install what training needs, train CONFIG, print the table of results
	$(TRAIN)
	$(EVALUATE)

test: lint ## lint, then run the tests; ARGS go to pytest
	$(BIN)/python -m pytest -n auto $(ARGS)

lint: $(VENV)/.installed-test ## formatting, lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.installed-test ## rewrite the code in the house format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.installed-bench ## print the speed targets beside what is reached
	$(BENCH)

clean: ## remove the virtual environment, builds and caches; keep runs/
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One call of pip for each set, so that the bound on torch holds for everything that wants torch.
$(VENV)/.installed-train: EXTRAS = train
$(VENV)/.installed-test: EXTRAS = train,render,test,dev
$(VENV)/.installed-bench: EXTRAS = train,render,bench
$(VENV)/.installed-%: pyproject.toml | $(BIN)/pip
	$(INSTALL) --upgrade pip
	$(INSTALL) --editable '.[$(EXTRAS)]'
	@touch $@

# The first of these Pythons that is new enough and can make a virtual environment.
PYTHONS = $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python)
USABLE = import sys; assert sys.version_info >= (3, 11); import venv, ensurepip
TELL = import sys; print('%d.%d.%d' % sys.version_info[:3])

$(BIN)/pip:
	@found=; for python in $(PYTHONS); do \
		if $$python -c "$(USABLE)" 2>/dev/null; then \
			echo "Making $(VENV) with $$python"; \
			exec $$python -m venv $(VENV); \
		fi; \
		found="$$found $$python ($$($$python -c "$(TELL)" 2>/dev/null || echo missing))"; \
	done; \
	echo "Python: found$$found; expected 3.11 or newer with venv and ensurepip" \
		"(on Debian and Ubuntu the package python3-venv)." >&2; \
	echo "Name one with: make PYTHON=/path/to/python3.12" >&2; \
	exit 1
