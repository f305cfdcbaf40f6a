# The front door: everything one does here, in one word each.  See CMakePresets.json.
PREFIX ?= /usr/local
SOAK ?= 20
build = cmake --preset $(1) $(2) >/dev/null && cmake --build --preset $(1)

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z0-9 ]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## watch threads and tasks change hands on one semaphore
	@tools/need build
	@$(call build,release) --target example-demo
	@build/release/examples/demo

test: ## build everything and run all tests
	@tools/need build test
	@tools/run-tests release

tsan asan: ## the tests under ThreadSanitizer; under Address- and UBSanitizer
	@tools/need build test $(filter tsan,$@)
	@tools/run-tests $@

aarch64: ## the tests of the core and of tasks, cross-built and run under qemu
	@tools/need build aarch64
	@tools/run-tests aarch64

explore: ## every interleaving of small scenarios, and the mutants they must find
	@tools/need build test
	@$(call build,release)
	@build/release/tests/model/explore
	@tests/model/hunt build/release/tests/model

soak: ## the stress and crash tests, SOAK=20 times as long, and a deeper look at the scenarios
	@tools/need build test
	@WEIR_TEST_SCALE=$(SOAK) tools/run-tests release -L 'stress|crash' --timeout 86400
	@build/release/tests/model/explore --preemptions 3
	@build/release/tests/model/explore --random $$(($(SOAK) * 50000))

lint: ## warnings of two compilers, layers, sizes, format, clang-tidy, shellcheck
	@tools/need build lint
	@tools/lint

bench: ## measure against the peers
	@tools/need build bench
	@$(call build,bench)
	@bench/run build/bench

format: ## lay out all C and C++
	@tools/need lint
	@tools/sources | xargs clang-format -i

install: ## under PREFIX=/usr/local, in DESTDIR if given
	@tools/need build
	@$(call build,release,-DCMAKE_INSTALL_PREFIX=$(PREFIX))
	@cmake --install build/release

clean: ## forget everything built
	@rm -rf build

.PHONY: help demo test tsan asan aarch64 explore soak lint bench format install clean
