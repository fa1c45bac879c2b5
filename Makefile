# The whole set-up: `make quickstart` or `make test` on a fresh clone, with Python, a C++17 compiler and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# Two TVMs do not fit in one process: MetaSchedule's has an environment of its own. It is a plain one, made
# like the first: sharing torch by a .pth file would put Ansor's TVM, which is beside it, on its path too.
MS_VENV := .venv-metaschedule
MS_BIN := $(MS_VENV)/bin
MS_PIP := $(MS_BIN)/python -m pip install --quiet --constraint constraints.txt \
  --constraint constraints-metaschedule.txt

# What to install, from pyproject.toml: the package's needs, and the extras that "$(1)" is true of.
REQUIREMENTS = import itertools, tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
  extras = (v for k, v in p["project"]["optional-dependencies"].items() if $(1)); \
  print(*p["build-system"]["requires"], *p["project"]["dependencies"], *itertools.chain(*extras), sep="\n")

NATIVE := CMakeLists.txt $(wildcard cmake/*) $(shell find cpp -type f)
CPP_SOURCES := $(shell find cpp tests/cpp -name '*.cc')
CPP_HEADERS := $(shell find cpp tests/cpp -name '*.h')

JOBS := $(shell nproc)

# Each holds a TVM and a torch; the files of tests are shared out among them.
PYTEST_WORKERS ?= 2
# A file's tests stay in one process. Where that crashes, what is left waits for ever (pytest-xdist 3.8), unless no
# other takes its place: then the run ends, and names the test.
IN_PARALLEL = --numprocesses $(PYTEST_WORKERS) --dist loadfile --max-worker-restart 0

# What rounding could change: training, models, native scoring, adaptation. Files of JSON are no part of that.
NUMERIC_TESTS := tests/python/training tests/python/model tests/python/adapting \
  --ignore tests/python/model/test_mutated_models.py

# What `make quickstart` tunes, and how many programs it measures.
NET ?= dqn
TRIALS ?= 100

CMAKE := $(BIN)/cmake --log-level=WARNING -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja
CMAKE_TESTS := -DTLP_TVM_PYTHON=OFF -DTLP_TVM_TESTS=ON -DTLP_TVM_WERROR=ON
CMAKE_SANITIZED := $(CMAKE_TESTS) -DCMAKE_BUILD_TYPE=RelWithDebInfo
CMAKE_EXTENSION = -Dpybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir) -DPython_EXECUTABLE=$(abspath $(BIN))/python
CTEST := $(BIN)/ctest --output-on-failure --no-tests=error

# The folders whose programs taught a shipped model: of `epyc`, timed with warm caches, before there were others; of `x86`
# those too, and with cold weights, as networks run them, most of which models chose that the ones before had taught.
taught = $(addprefix datasets/,$(file < datasets/taught/$(1).txt))

# The platforms of the latter, whose programs the trees of `x86` learn from.
TREES := zen3-avx2-2t zen4-avx512-2t zen5-avx512-2t

# Of the public logs, the platforms with most programs, and those GPUs that share most tasks.
PUBLIC_LARGEST := v100 x86-24c k80 mi50 mi100-shared
PUBLIC_GPUS := v100 k80 mi50
# So many programs of a task teach; all of the tasks that judge are ranked.
PUBLIC_BUILD := --odd-targets --skip-bad-lines --split task --near-duplicates apart --test-share 0.2 --validation-share 0 --programs-per-task 64 --replace

# How long `make soak` disturbs the commands.
SOAK_MINUTES ?= 60

# Mutated lines that `make sanitize` compares with Python's json: some ten seconds.
SANITIZED_LINES ?= 100000
# Mutated model files that it holds against torch: half a minute.
SANITIZED_MODELS ?= 2000

export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DELETE_ON_ERROR:
.PHONY: help quickstart test test-cpp test-python test-numeric test-metaschedule lint lint-python lint-cpp tidy format bench results results-public searches networks \
	proof-breeding dataset pretrained docs fuzz sanitize soak browser clean distclean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

quickstart: $(VENV)/.package  ## install, then tune a small network on this machine (minutes)
	$(BIN)/tlp-tvm doctor
	$(BIN)/tlp-tvm tune $(NET) --trials $(TRIALS) --out runs/quickstart

test: test-cpp test-python test-metaschedule  ## install, then every test

test-cpp: $(VENV)/.dependencies
	$(CMAKE) -B build/tests $(CMAKE_TESTS)
	$(BIN)/cmake --build build/tests
	$(CTEST) --test-dir build/tests

test-python: $(VENV)/.package
	$(BIN)/python -m pytest $(IN_PARALLEL)

# Other processors round otherwise: torch, oneDNN and the native kernels are held to each instruction set in turn.
# `make test` has run the best one.
test-numeric: $(VENV)/.package  ## run the numeric tests as on older processors
	for kernels in $$($(BIN)/python -c 'from tlp_tvm import _core; print(*_core.instruction_sets()[1:])'); do \
	  case $$kernels in \
	    baseline) limits="ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41" ;; \
	    *) limits="ATEN_CPU_CAPABILITY=$$kernels ONEDNN_MAX_CPU_ISA=$$kernels" ;; \
	  esac; \
	  echo "== $$kernels"; \
	  env $$limits NATIVE_KERNELS=$$kernels $(BIN)/python -m pytest $(NUMERIC_TESTS) \
	    $(IN_PARALLEL) || exit 1; \
	done

test-metaschedule: $(MS_VENV)/.package  ## test the second framework in its own environment
	$(MS_BIN)/python -m pytest tests/metaschedule $(IN_PARALLEL)

lint: lint-python lint-cpp  ## check formatting, types and suspicious code; any finding fails

lint-python: $(VENV)/.dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

lint-cpp: $(VENV)/.dependencies
	$(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES) $(CPP_HEADERS)
	$(MAKE) --no-print-directory --jobs=$(JOBS) tidy

tidy: $(patsubst %,build/lint/%.tidy,$(filter cpp/%,$(CPP_SOURCES)))

format: $(VENV)/.dependencies  ## format the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_SOURCES) $(CPP_HEADERS)

bench: $(VENV)/.package  ## measure the throughput of extraction, beside the alternatives
	$(BIN)/tlp-tvm bench extract
	$(BIN)/python benchmarks/records.py

results: dataset  ## train and evaluate everything in docs/results.md again (hours on two cores)
	$(BIN)/python benchmarks/results.py --again

# LOGS: a folder with a folder of record files for each public platform.
results-public: $(VENV)/.package  ## the same for public logs: make results-public LOGS=folder
	$(BIN)/tlp-tvm dataset build $(foreach p,$(PUBLIC_LARGEST),$(p)=$(LOGS)/$(p)) $(PUBLIC_BUILD) --out build/public
	$(BIN)/tlp-tvm dataset build $(foreach p,$(PUBLIC_GPUS),$(p)=$(LOGS)/$(p)) $(PUBLIC_BUILD) --out build/public-gpu
	$(BIN)/python benchmarks/results.py --public --again

searches: $(VENV)/.package $(MS_VENV)/.package  ## compare searches again for docs/search.md (hours on two idle cores)
	$(BIN)/python benchmarks/searches.py --run ansor
	$(BIN)/python benchmarks/searches.py --run metaschedule

networks: $(VENV)/.package $(MS_VENV)/.package  ## time tuned networks beside their peers again for docs/networks.md (a day on two idle cores)
	$(BIN)/python benchmarks/networks.py

proof-breeding: $(VENV)/.package $(MS_VENV)/.package  ## replay 10,000 bred programs of every operator task through TVM (half an hour)
	$(BIN)/python benchmarks/breeding.py --write
	$(MS_BIN)/python benchmarks/trace_breeding.py --write

dataset: $(VENV)/.package  ## build the datasets of the shipped models from datasets/, with statistics
	$(BIN)/tlp-tvm dataset build $(call taught,epyc) --replace --out build/dataset
	$(BIN)/tlp-tvm dataset stats build/dataset --html build/dataset.html
	$(BIN)/tlp-tvm dataset build $(call taught,x86) --replace --out build/dataset-x86
	$(BIN)/tlp-tvm dataset stats build/dataset-x86 --html build/dataset-x86.html
	$(BIN)/tlp-tvm dataset build $(call taught,x86) datasets/test-cold --replace --out build/dataset-judged
	$(BIN)/tlp-tvm dataset build $(call taught,epyc-metaschedule) --replace --out build/dataset-metaschedule
	$(BIN)/tlp-tvm dataset stats build/dataset-metaschedule --html build/dataset-metaschedule.html
	$(BIN)/tlp-tvm dataset build $(call taught,x86-metaschedule) --replace --out build/dataset-x86-metaschedule

pretrained: dataset $(MS_VENV)/.package  ## train the shipped models again
	rm -rf build/pretrained
	$(BIN)/tlp-tvm train build/dataset-x86 --members 4 --epochs 28 --out build/pretrained/x86
	$(BIN)/python benchmarks/training_networks.py build/training
	$(BIN)/python benchmarks/training_networks.py build/training --exported
	$(BIN)/tlp-tvm train build/dataset-x86 --trees --out build/pretrained/x86 --networks build/training \
	  $(foreach p,$(TREES),--platform $(p))
	$(BIN)/tlp-tvm train build/dataset --members 4 --out build/pretrained/epyc
	$(BIN)/tlp-tvm train build/dataset --members 3 --out build/pretrained/epyc-small
	$(BIN)/tlp-tvm train build/dataset-metaschedule --members 4 --out build/pretrained/epyc-metaschedule
	$(BIN)/tlp-tvm train build/dataset-x86-metaschedule --members 4 --epochs 28 --out build/pretrained/x86-metaschedule
	$(MS_BIN)/tlp-tvm train build/dataset-x86-metaschedule --trees --out build/pretrained/x86-metaschedule \
	  --networks build/training
	for model in x86 x86-metaschedule epyc epyc-small epyc-metaschedule; do \
	  rm -rf python/tlp_tvm/pretrained/$$model build/pretrained/$$model/metrics.csv && \
	  $(BIN)/tlp-tvm export build/pretrained/$$model -o build/pretrained/$$model/model.pt && \
	  mv build/pretrained/$$model python/tlp_tvm/pretrained/ || exit 1; \
	done

docs: $(VENV)/.package $(MS_VENV)/.package  ## write the API reference to build/docs; any warning fails
	rm -rf build/docs
	$(BIN)/python docs/reference.py ansor build/docs
	$(MS_BIN)/python docs/reference.py metaschedule build/docs/metaschedule

fuzz: test-cpp $(VENV)/.package  ## compare a million mutated record lines with Python's json, 100,000 mutated models with torch
	$(BIN)/python tests/python/fuzz_oracle.py build/tests/tests/cpp/fuzz_records tests/fuzz/corpus/* --lines 1000000
	$(BIN)/python tests/python/fuzz_models.py --cases 100000

sanitize: $(VENV)/.dependencies  ## run the C++ tests, fuzzed records and fuzzed models under the sanitizers
	$(CMAKE) -B build/address,undefined $(CMAKE_SANITIZED) -DTLP_TVM_SANITIZE=address,undefined \
	  -DTLP_TVM_PYTHON=ON $(CMAKE_EXTENSION)
	$(CMAKE) -B build/thread $(CMAKE_SANITIZED) -DTLP_TVM_SANITIZE=thread
	for sanitizer in address,undefined thread; do \
	  $(BIN)/cmake --build build/$$sanitizer && $(CTEST) --test-dir build/$$sanitizer || exit 1; \
	done
	$(BIN)/python tests/python/fuzz_oracle.py build/address,undefined/tests/cpp/fuzz_records tests/fuzz/corpus/* \
	  --lines $(SANITIZED_LINES)
	PYTHONPATH=python ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$(for name in asan ubsan stdc++; do c++ -print-file-name=lib$$name.so; done | xargs)" \
	  $(BIN)/python tests/python/fuzz_models.py --cases $(SANITIZED_MODELS) \
	  --core build/address,undefined/cpp/bindings/_core*.so

soak: $(VENV)/.package  ## kill, stop and starve collect, tune and compare for an hour; SOAK_MINUTES says how long
	unshare --map-root-user --mount $(BIN)/python tests/soak/soak.py --minutes $(SOAK_MINUTES)

browser: $(VENV)/.package  ## check in Chromium that markup in a run's files stays text
	$(BIN)/python benchmarks/pages_in_a_browser.py

clean:  ## remove build products; keep the environments
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f $(VENV)/.package $(MS_VENV)/.package

distclean: clean  ## remove the environments too
	rm -rf $(VENV) $(MS_VENV)

# The environment: made once, and brought up to date when the pinned versions or the package's needs change.
$(VENV)/.created:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), f"Python 3.11 or newer expected, found {sys.version}"'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.dependencies: $(VENV)/.created pyproject.toml constraints.txt
	@echo "== $(VENV): the pinned dependencies, about 2.5 GB"
	$(PIP) pip
	$(BIN)/python -c '$(call REQUIREMENTS,k != "metaschedule")' >$(VENV)/requirements.txt
	$(PIP) cmake ninja --requirement $(VENV)/requirements.txt
	touch $@

$(MS_VENV)/.dependencies: $(VENV)/.created pyproject.toml constraints.txt constraints-metaschedule.txt
	@echo "== $(MS_VENV): the pinned dependencies, about 1.9 GB"
	$(BIN)/python -m venv $(MS_VENV)
	$(MS_PIP) pip
	$(BIN)/python -c '$(call REQUIREMENTS,k in ("metaschedule", "peers", "test", "docs"))' >$(MS_VENV)/requirements.txt
	$(MS_PIP) cmake ninja --requirement $(MS_VENV)/requirements.txt
	touch $@

# The package itself: Python files are live, a change of the C++ side builds it again.
$(VENV)/.package: $(VENV)/.dependencies $(NATIVE)
	@echo "== $(VENV): building tlp-tvm"
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(MS_VENV)/.package: $(MS_VENV)/.dependencies $(NATIVE)
	@echo "== $(MS_VENV): building tlp-tvm"
	$(MS_PIP) --no-deps --no-build-isolation --config-settings=build-dir=build/metaschedule --editable .
	touch $@

# clang-tidy, file by file, again only for what changed.
build/lint/compile_commands.json: $(VENV)/.dependencies CMakeLists.txt $(wildcard cmake/*) \
		$(shell find cpp tests/cpp -name CMakeLists.txt) Makefile
	$(CMAKE) -B build/lint -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DTLP_TVM_TESTS=ON \
	  $(CMAKE_EXTENSION)
	touch $@

build/lint/%.tidy: % $(CPP_HEADERS) .clang-tidy build/lint/compile_commands.json
	@mkdir -p $(@D)
	$(BIN)/clang-tidy --quiet -p build/lint $<
	touch $@
