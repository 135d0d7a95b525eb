# The front door over meson. `make help` lists what there is.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 5
SECONDS ?= 60
BENCH_ARGS ?=

# One compiler a build directory, whatever the environment says; gcc and clang may be told by path.
GCC ?= gcc
CLANG ?= clang
MESON = CC=$(GCC) CFLAGS= LDFLAGS= meson setup
MESON_CLANG = CC=$(CLANG) CFLAGS= LDFLAGS= meson setup

.PHONY: all demo check bench torture fuzz check-fresh install uninstall clean help plain asan clang fuzzers

all: build/build.ninja
	@ninja -C build kymo kymo-gdbserver lib/libkymo-marker.so.1.0.0 lib/libkymo-engine.so.1.0.0

build/build.ninja:
	@$(MESON) build

help:
	@echo 'make                          build/kymo, and build/kymo-gdbserver'
	@echo 'make demo                     install what is needed, build, record a real program, show the report'
	@echo 'make check                    install what is needed, build in every way, run every test'
	@echo 'make install [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make uninstall                remove what the last make install put in place'
	@echo 'make fuzz [FUZZ_SECONDS=5]    every fuzzer for so long; what they learn stays in build-fuzz/corpus'
	@echo 'make torture [SECONDS=60] [KILLS=500]     kill recorders so often, and for so long'
	@echo 'make bench [BENCH_ARGS=]      measure kymo and its peers in one run'
	@echo 'make check-fresh              make demo and make check in a fresh Debian 12 (root, minutes)'
	@echo 'make clean                    remove everything that was built'
	@echo
	@echo 'tests/run GLOB runs single tests of a build that is there; tests/run --help'

demo:
	@tools/setup build demo
	@$(MAKE) --no-print-directory all
	@tools/demo

check:
	@tools/setup build demo test
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run --all

# What `tests/run --all` builds. Reconfiguring each time finds packages and files that came after the
# first time. Sanitizers name functions and lines, which -g1 has. What clang builds without them is
# for its warnings, and no test runs it: it is not optimized, and has no programs to be traced. Tests
# compile those of markers with clang, too.
plain:
	@$(MESON) $(if $(wildcard build/build.ninja),--reconfigure) build -Dtests=enabled
	@ninja -C build

asan:
	@$(MESON) $(if $(wildcard build-asan/build.ninja),--reconfigure) build-asan -Dtests=enabled \
		-Db_sanitize=address,undefined -Doptimization=1 -Dwerror=false -Ddebug=false -Dc_args=-g1
	@ninja -C build-asan

clang:
	@$(MESON_CLANG) $(if $(wildcard build-clang/build.ninja),--reconfigure) build-clang -Dtests=enabled -Dtargets=false \
		-Ddebug=false -Doptimization=0
	@ninja -C build-clang

fuzzers:
	@$(MESON_CLANG) $(if $(wildcard build-fuzz/build.ninja),--reconfigure) build-fuzz -Dfuzz=true \
		-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=false -Dc_args=-g1
	@ninja -C build-fuzz

fuzz:
	@tools/setup build test
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run --build fuzzers 'fuzz/*'

torture:
	@tools/setup build test
	@SECONDS=$(SECONDS) tests/run --build plain --torture $(SECONDS)

bench:
	@tools/setup build bench
	@$(MAKE) --no-print-directory all
	@bench/run $(BENCH_ARGS)

check-fresh:
	@tools/fresh-machine

install: all
	@$(MESON) --reconfigure build -Dprefix=$(PREFIX) >/dev/null
	@ninja -C build kymo lib/libkymo-marker.so.1.0.0 lib/libkymo-marker.a lib/libkymo-engine.so.1.0.0 lib/libkymo-engine.a
	@DESTDIR=$(DESTDIR) meson install -C build --no-rebuild

# Meson notes what it installs.
uninstall:
	@[ -f build/meson-logs/install-log.txt ] || { echo 'make uninstall: nothing was installed from here' >&2; exit 1; }
	@ninja -C build uninstall >/dev/null

clean:
	rm -rf build build-asan build-clang build-fuzz
