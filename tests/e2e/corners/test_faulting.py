"""Programs that handle faults by their program counters: an instruction that may fault is displaced in none of them."""
import collections
import random
import re
import time

from kymotest import (KYMO, check, check_equal, check_same, check_text_intact, eventually, kymo, probe_counts, program,
                      record, report_json, run, start, target, target_path, timeout)

MIXED = 'handled:mixed:*'

OCAML = '''
let rec f n = if n = 0 then 0 else 1 + f (n - 1)
let rec g l = match l with [] -> 0 | x :: rest -> x + g rest
let caught = ref 0
let () =
  let long = List.init 100000 (fun i -> i) in
  for _ = 1 to 20 do
    try ignore (f 100_000_000) with Stack_overflow -> incr caught
  done;
  Printf.printf "caught %d %d\\n%!" !caught (g long)
'''

ADA = '''
with Ada.Text_IO; use Ada.Text_IO;
procedure Faulty is
   type Node;
   type Link is access all Node;
   type Node is record Value : Integer; Next : Link; end record;
   function Read_Node (L : Link) return Integer;
   pragma No_Inline (Read_Node);
   pragma Suppress (Access_Check);
   function Read_Node (L : Link) return Integer is begin return L.Value; end Read_Node;
   function Depth (N : Integer) return Integer;
   pragma No_Inline (Depth);
   function Depth (N : Integer) return Integer is
   begin
      if N = 0 then return 0; end if;
      return 1 + Depth (N - 1) * 3;
   end Depth;
   Nulls, Deep : Integer := 0;
   It : Link := null;
begin
   for I in 1 .. 20 loop
      begin
         if Read_Node (It) = 7 then Put_Line ("seven"); end if;
      exception when others => Nulls := Nulls + 1;
      end;
   end loop;
   for I in 1 .. 5 loop
      begin
         if Depth (2_000_000_000) = 7 then Put_Line ("seven"); end if;
      exception when Storage_Error => Deep := Deep + 1;
      end;
   end loop;
   Put_Line ("nulls" & Nulls'Image & " deep" & Deep'Image);
end Faulty;
'''

CXX = '''
#include <csignal>
#include <cstdio>
#include <stdexcept>
struct node { int value; };
extern "C" __attribute__((noinline)) int read_node(node *n) { return n->value; }
extern "C" __attribute__((noinline)) int twice(int n) { return n + n; }
static void handler(int)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    throw std::runtime_error("null");
}
int main()
{
    int caught = 0;
    signal(SIGSEGV, handler);
    for (int i = 0; i < 20; i++)
        try {
            if (read_node(nullptr) == twice(i))
                std::puts("?");
        } catch (std::exception &) {
            caught += twice(1) / 2;
        }
    std::printf("caught %d\\n", caught);
}
'''


def check_same_as_bare(command, *probes, options=()):
    """It does the same when it is recorded; kymo's warnings come back."""
    bare = run(*command).ok()
    words = [word for probe in probes for word in ('-p', probe)]
    recorded = record(*options, *words, '--', *command).ok()
    check_same(recorded.out, bare.out, 'its output')
    return recorded


def start_recording(pid, *args):
    """kymo record --pid PID, once it says that all is planned for a process without handlers, or with the ones that it
    has."""
    recorder = start(KYMO, 'record', *args, '--pid', pid)
    recorder.wait_for('recording process', which=1)
    return recorder


def is_handling(process):
    process.send('handle\n')
    process.wait_for('^handling$')


def ask(process, line, answer):
    """One more answer than there has been."""
    before = process.out.count(answer)
    process.send(f'{line}\n')
    eventually(lambda: process.out.count(answer) > before or not process.is_alive(), f'{answer} comes')
    check(process.is_alive(), 'it lives', process.result() if not process.is_alive() else '')


# ---- languages -----------------------------------------------------------------------------------


def test_an_ocaml_program_survives_the_overflow_of_its_stack(tmp):
    (tmp / 'so.ml').write_text(OCAML)
    run(program('ocamlopt'), '-o', 'so', 'so.ml', cwd=tmp).ok()
    check_equal(run(tmp / 'so').ok().out, 'caught 20 4999950000\n', 'what it prints')
    check_same_as_bare([tmp / 'so'], f'{tmp}/so:camlSo__f_*', f'{tmp}/so:camlSo__g_*')
    report = report_json()
    counts = probe_counts()
    f = next(n for name, n in counts.items() if 'camlSo__f_' in name)
    check(f > 100000, f'recorded down to where the stack ends: {f}')
    check(report['lost_events'] > 0, 'what came behind is counted as lost', report)


def test_ada_handles_null_dereferences_and_the_end_of_its_stack(tmp):
    (tmp / 'faulty.adb').write_text(ADA)
    for options in (['-O1'], ['-O1', '-fstack-check'], ['-O0']):
        run(program('gnatmake'), '-f', '-q', *options, 'faulty.adb', cwd=tmp).ok()
        check_equal(run(tmp / 'faulty').ok().out, 'nulls 20 deep 5\n', f'what it prints, with {options}')
        result = check_same_as_bare([tmp / 'faulty'], f'{tmp}/faulty:faulty__read_node.*',
                                    f'{tmp}/faulty:faulty__depth.*')
        if options == ['-O1']:
            check('handles SIGSEGV or SIGBUS' in result.err, 'kymo says what it has taken out', result)


def test_cxx_throws_out_of_a_handler(tmp):
    (tmp / 'thrown.cc').write_text(CXX)
    run('g++', '-O1', '-fnon-call-exceptions', '-fasynchronous-unwind-tables', '-o', 'thrown', 'thrown.cc',
        cwd=tmp).ok()
    result = check_same_as_bare([tmp / 'thrown'], f'{tmp}/thrown:read_node', f'{tmp}/thrown:twice')
    check_equal(next(n for name, n in probe_counts().items() if name.endswith(':twice')), 20,
                'calls of what can be recorded')
    check('1 function that matches' in result.err and 'read_node: the instruction at' in result.err,
          'kymo says what is left out', result)


# ---- an own program ------------------------------------------------------------------------------


def test_a_handler_finds_its_label(tmp):
    """Attached to, with its handlers in: the instruction itself is refused, the function that begins with a push is
    not."""
    process = target('handled', 'handle')
    refused = kymo('record', '--backend', 'inproc', '-p', 'handled:read_word', '--pid', process.pid)
    refused.refused('read_word.* may fault, and the process handles SIGSEGV or SIGBUS')
    recorder = start_recording(process.pid, '--backend', 'inproc', '-p', 'handled:read_saved', '-p', 'handled:mixed',
                               '-p', 'handled:divided')
    ask(process, 'fault 100', 'faulted 300')
    ask(process, 'divide 100', 'divided 100')
    ask(process, 'call 100', 'called 100')
    recorder.end(2).ok()
    ask(process, 'fault 1', 'faulted 3')
    check_equal(process.end().ok().json(), {'mixed': 201}, 'what it counts')
    check_equal(probe_counts(), {'handled:read_saved': 200, 'handled:mixed': 200, 'handled:divided': 200}, 'calls')


def test_only_arithmetic_is_left_where_only_that_is_handled(tmp):
    """`kymo explain` tells of the process what the recorder does."""
    process = target('handled')
    for place in ('read_word', 'divided+0x6'):
        kymo('explain', process.pid, place).ok()
    explained = kymo('explain', process.pid, 'read_word').ok()
    check('this one does not handle it now' in explained.out, 'what may fault is named', explained)
    check('may fault  ' in kymo('explain', target_path('handled'), 'read_word').ok().out, 'of the file, too')
    is_handling(process)
    for place in ('read_word', 'divided+0x6'):
        result = kymo('explain', process.pid, place).ended(1)
        check('may fault, and the process handles SIG' in result.out, 'why it is refused', result)
    result = kymo('explain', process.pid, 'read_saved').ok()
    check('tactic     pun: 1 instruction' in result.out and 'handles faults' in result.out, 'the push alone', result)
    process.end().ok()


def test_whoever_knows_better_displaces_all(tmp):
    process = target('handled', 'handle')
    recorder = start_recording(process.pid, '--displace-faulting', '-p', 'handled:read_word')
    process.send('fault 1\n')
    eventually(lambda: not process.is_alive(), 'its handler does not find the label')
    check_equal(process.end().status, 4, 'its status')
    recorder.end().ok()


# ---- handlers that come later --------------------------------------------------------------------


@timeout(300)
def test_probes_make_way_for_a_handler_that_comes_later(tmp):
    """Threads run through each instruction of a function meanwhile: no call of those that stay is missed, and the
    results are right."""
    for options in ([], ['--no-rseq']):
        process = target('handled', '-t', '3')
        recorder = start_recording(process.pid, '--buffer', '64M', *options, '-p', MIXED, '-p', 'handled:read_word',
                                   '-p', 'handled:divided+0x6', '-p', 'handled:read_saved')
        ask(process, 'call 50', 'called 50')
        is_handling(process)
        recorder.wait_for(r'handles SIG.* from now on: \d+ probes', which=1)
        ask(process, 'fault 50', 'faulted 150')
        ask(process, 'divide 50', 'divided 50')
        ask(process, 'call 50', 'called 50')
        recorder.end(2).ok()
        ask(process, 'fault 1', 'faulted 3')
        process.end().ok()
        counts = probe_counts()
        check_equal(counts['handled:read_saved'], 150, 'of a function that is entered by a push')
        check_equal(counts['handled:read_word'], 50, 'of a load, until the handler came')


def test_what_stays_is_exact_while_plans_are_exchanged(tmp):
    process = target('handled')
    recorder = start_recording(process.pid, '-p', MIXED)
    ask(process, 'call 1000', 'called 1000')
    is_handling(process)
    ask(process, 'fault 1000', 'faulted 3000')
    ask(process, 'call 1000', 'called 1000')
    result = recorder.end(2).ok()
    process.end().ok()
    counts = collections.Counter(probe_counts().values())
    # 16 instructions; the last four of a call that faults run, too. Loads are in until the handler comes, and what
    # comes between them is skipped by the fault.
    check_equal(set(counts), {1000, 2000, 3000}, f'counts {counts}')
    # Three loads; and where the jump of another one can only lead to one address, something may be mapped there. Each
    # is told.
    n_left_out = int(re.search(r'warning: skipped (\d+) instructions that match', result.err)[1])
    check_equal(counts[1000], n_left_out, 'probes that are in until the handler comes')
    check(3 <= n_left_out <= 6, f'{n_left_out} are left out', result)
    check(counts[3000] >= 6, f'all that is run each time: {counts}')


def test_a_launched_program_has_its_handler_before_it_faults(tmp):
    """It sets its handlers and faults at once: sigaction waits until the probes have made way."""
    command = [target_path('handled'), 'handle']
    text = 'fault 20\ncall 5\ndivide 3\n'
    bare = run(*command, input=text).ok()
    result = record('-p', 'handled:read_word', '-p', 'handled:read_saved', '-p', 'handled:divided', '--', *command,
                    input=text).ok()
    check_same(result.out, bare.out, 'its output')
    check_equal(probe_counts()['handled:read_saved'], 25, 'calls')
    check(re.search(r'read_word: the instruction at .* may fault', result.err), 'what is left out is named', result)


def test_handlers_come_and_recorders_go(tmp):
    """Two recordings, one of which is killed: whatever is left finds the program's text as it must be."""
    process = target('handled', '-t', '2')
    first = start_recording(process.pid, '-o', 'first', '-p', 'handled:read_saved', '-p', 'handled:divided')
    second = start_recording(process.pid, '-o', 'second', '-p', 'handled:read_word')
    is_handling(process)
    second.wait_for(r'handles SIG.* from now on: \d+ probes', which=1)
    ask(process, 'fault 20', 'faulted 60')
    second.kill()
    ask(process, 'fault 20', 'faulted 60')
    kymo('detach', process.pid).ok()
    ask(process, 'fault 20', 'faulted 60')
    first.end(2).ok()
    ask(process, 'fault 20', 'faulted 60')
    process.end().ok()


def test_a_child_sets_a_handler_that_its_parent_does_not_have(tmp):
    """The child may have fewer rights: it has no say in what is recorded of its parent, and of the next child."""
    process = target('handled')
    recorder = start_recording(process.pid, '--follow', '-p', 'handled:read_word', '-p', 'handled:read_saved', '-p',
                               'handled:divided+0x6')
    for _ in range(2):
        ask(process, 'call 10', 'called 10')
        ask(process, 'fork 20', 'forked 0')
    for names in 'SIGSEGV or SIGBUS', 'SIGFPE':
        recorder.wait_for(
            rf'process \d+ handles {names} from now on, and its parent does not: 1 probe .* taken out of it', which=1)
    ask(process, 'call 10', 'called 10')
    check('probes were out of its code' not in recorder.end(2).ok().err, 'it is told once, as what it is')
    process.end().ok()
    counts = probe_counts()
    check_equal({name: counts.get(f'handled:{name}') for name in ['read_word', 'read_saved', 'divided+0x6']},
                {'read_word': 30, 'read_saved': 30, 'divided+0x6': 30}, 'calls of the parent')


# The kernel alone is told of the handler, and a library that has a probe is opened at once.
UNSEEN = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
int read_word(const int *from);
extern const char read_word_at[];
__asm__(".text\n.globl read_word, read_word_at\n.type read_word, @function\n"
        "read_word:\nread_word_at: mov (%rdi),%eax\nadd $1,%eax\nret\n.size read_word, . - read_word\n");
static void on_fault(int number, siginfo_t *info, void *data)
{
	_exit(((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP] == (greg_t)read_word_at ? 0 : 4);
}
int main(void)
{
	struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } action = {
		on_fault, SA_SIGINFO | 0x04000000, NULL, 0
	};
	char line[10];
	int word = 1;
	for (int i = 0; i < 10; i++) read_word(&word);
	puts("ready"); fflush(stdout);
	fgets(line, sizeof(line), stdin);
	syscall(SYS_rt_sigaction, SIGSEGV, &action, NULL, 8);
	if (!dlopen("./liblate.so", RTLD_NOW)) abort();
	puts("handling"); fflush(stdout);
	fgets(line, sizeof(line), stdin);
	return read_word(NULL);
}
'''


def test_probes_make_way_for_a_handler_that_a_plan_was_the_first_to_see(tmp):
    (tmp / 'late.c').write_text('int late(int n) { return n * 7 + n / 3; }')
    (tmp / 'unseen.c').write_text(UNSEEN)
    run('gcc', '-O1', '-shared', '-fPIC', '-o', 'liblate.so', 'late.c', cwd=tmp).ok()
    run('gcc', '-O1', '-o', 'unseen', 'unseen.c', cwd=tmp).ok()
    process = start(tmp / 'unseen', cwd=tmp)
    process.wait_for('^ready$')
    recorder = start_recording(process.pid, '--follow', '-p', 'unseen:read_word', '-p', 'liblate:late')
    process.send('go\n')
    process.wait_for('^handling$')
    recorder.wait_for(r'handles SIGSEGV or SIGBUS from now on: 1 probe', which=1)
    process.end(input='\n').ok()
    recorder.end().ok()


def test_a_parent_sets_a_handler_that_its_child_has(tmp):
    process = target('handled')
    recorder = start_recording(process.pid, '--follow', '-p', 'handled:read_word', '-p', 'handled:read_saved')
    ask(process, 'fork 20', 'forked 0')
    ask(process, 'call 10', 'called 10')
    is_handling(process)
    ask(process, 'fault 20', 'faulted 60')
    ask(process, 'fork 20', 'forked 0')
    recorder.end(2).ok()
    process.end().ok()
    counts = probe_counts()
    check(10 <= counts['handled:read_word'] <= 30, f'calls before the parent handled faults: {counts}')


def test_what_two_recordings_have_stays_and_is_told(tmp):
    process = target('handled')
    first = start_recording(process.pid, '-o', 'first', '-p', 'handled:read_word', '-p', 'handled:divided+0x6')
    second = start_recording(process.pid, '-o', 'second', '-p', 'handled:read_word', '-p', 'handled:read_saved')
    is_handling(process)
    for recorder in (first, second):
        recorder.wait_for('1 probes that displace an instruction which may fault stay: another recording has them, too',
                          which=1)
    ask(process, 'divide 20', 'divided 20')
    ask(process, 'call 20', 'called 20')
    first.end(2).ok()
    second.end(2).ok()
    ask(process, 'fault 20', 'faulted 60')
    process.end().ok()


def test_a_recorder_that_is_killed_in_the_exchange_leaves_what_detach_takes_out(tmp):
    for i in range(4):
        process = target('handled', '-t', '2')
        recorder = start_recording(process.pid, '-p', MIXED, '-p', 'handled:read_word', '-p', 'handled:read_saved')
        process.send('handle\n')
        time.sleep(random.random() * 0.1)
        recorder.kill()
        process.wait_for('^handling$')
        kymo('detach', process.pid).ok()
        check_text_intact(process.pid)
        ask(process, 'fault 20', 'faulted 60')
        process.end().ok()


# ---- runtimes ------------------------------------------------------------------------------------

LUA = '''
local function f(n) return 1 + f(n + 1) end
local caught = 0
for i = 1, 20 do if not pcall(f, 1) then caught = caught + 1 end end
local s = 0
for i = 1, 2000000 do s = s + i % 7 end
print(caught, s, pcall(function() local x = nil; return x.y end) and 'no' or 'nil')
'''

NODE = '''
let caught = 0;
function f(n) { return 1 + f(n + 1); }
for (let i = 0; i < 20; i++) { try { f(1); } catch (e) { caught++; } }
const wasm = new WebAssembly.Module(Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1,
    114, 0, 0, 10, 9, 1, 7, 0, 32, 0, 40, 2, 0, 11]));
const read = new WebAssembly.Instance(wasm).exports.r;
let traps = 0;
for (let i = 0; i < 20; i++) { try { read(0x7fffffff); } catch (e) { traps++; } }
console.log(caught, traps, read(0));
'''


@timeout(300)
def test_luajit_with_all_its_functions_recorded(tmp):
    (tmp / 'it.lua').write_text(LUA)
    check_same_as_bare([program('luajit'), tmp / 'it.lua'], 'libluajit*:lua_*', 'libluajit*:luaL_*',
                       options=['--overwrite', '--buffer', '1M'])


@timeout(300)
def test_node_traps_in_web_assembly(tmp):
    (tmp / 'it.js').write_text(NODE)
    bare = run(program('node'), tmp / 'it.js').ok()
    check(bare.out.startswith('20 20'), 'it traps', bare)
    result = record('--overwrite', '--buffer', '1M', '-p', 'libuv:uv_*', '-p', 'libc:mem*', '--', program('node'),
                    tmp / 'it.js').ok()
    check_same(result.out, bare.out, 'its output')
