"""Texts and bytes whose length is an expression: what programs write is what strace shows of it, and no byte more is
read, whichever way memory is read."""
import ast
import collections
import json
import re
import shutil
import signal
import socket

import golang
from kymotest import (check, check_equal, check_text_intact, eventually, kymo, need_uprobes, program, record,
                      report_json, run, skip, start, start_record)

LIMIT = 128


def lines(directory='kymo.data'):
    """The arguments of each event, as kymo shows them."""
    shown = kymo('report', '--events', directory).ok().out.splitlines()
    return [re.fullmatch(r' *[\d.]+ \[\d+\] +\d+ \S+ \S+ ?(.*)', line)[1] for line in shown]


def arguments(directory='kymo.data'):
    report = kymo('report', '--events', '--json', directory).ok().out
    return [json.loads(line)['args'] for line in report.splitlines() if '"args"' in line]


# ---- beside strace -------------------------------------------------------------------------------

SCRIPT = r'''
echo hello
printf 'no end'
printf 'a\0b'
printf '\001\377\n'
printf '%0127d' 1
printf '%0128d' 2
printf '%0129d' 3
for i in 1 2 3; do echo line $i; done
echo "last one"
'''


def written_by_strace(tmp, *command):
    """(descriptor, bytes) of each write of the command."""
    run(program('strace'), '-xx', '-s', 1000, '-e', 'trace=write', '-o', tmp / 'strace', *command).ok()
    found = re.findall(r'^write\((\d+), "(.*)", \d+\) += \d+$', (tmp / 'strace').read_text(), re.MULTILINE)
    return [(int(fd), ast.literal_eval(f"b'{text}'")) for fd, text in found]


def as_text(data):
    """What a record has of it: up to a NUL or the limit."""
    text = data[:LIMIT + 1].split(b'\0')[0]
    return text.decode(errors='replace') if len(text) <= LIMIT else text[:LIMIT].decode() + '…'


def test_what_a_shell_writes_is_what_strace_shows(tmp):
    command = program('bash'), '-c', SCRIPT
    expected = written_by_strace(tmp, *command)
    check(len(expected) >= 11 and any(len(data) == LIMIT + 1 for _, data in expected), 'writes', expected)
    for number, way in enumerate([[], ['--fast-reads'], ['--no-rseq']]):
        record('-o', f'{number}.data', *way, '-p', 'libc:write fd=(int)arg0 str(arg1, arg2) bytes=buf(arg1, arg2)',
               '--', *command).ok()
        found = arguments(f'{number}.data')
        check_equal([(row['fd'], row['bytes']) for row in found],
                    [(fd, data[:LIMIT].hex()) for fd, data in expected], f'bytes, {way}')
        check_equal([row['arg1'] for row in found], [as_text(data) for _, data in expected], f'texts, {way}')


def test_filters_and_keys_have_texts_of_a_computed_length(tmp):
    command = program('bash'), '-c', 'for i in 1 2 3; do echo GET; echo GETS; printf GET; printf GE; echo; done'
    expected = collections.Counter(data.decode() for _, data in written_by_strace(tmp, *command))
    check_equal(expected, {'GET\n': 3, 'GETS\n': 3, 'GET': 3, 'GE': 3, '\n': 3}, 'what is written')
    record('--count', 'libc:write by str(arg1, arg2)', '--count', 'libc:write /str(arg1, arg2) == "GET"/ by arg2',
           '--count', 'libc:write /str(arg1, arg2 - 1) == "GET"/ by arg2', '--count',
           'libc:write /str(arg1, arg2) != "GET"/ by str(arg1, arg2 - 1)', '--', *command).ok()
    tables = [{row['keys'][0]: row['count'] for row in table['rows']} for table in report_json()['aggregations']]
    check_equal(tables, [dict(expected), {3: 3}, {4: 3}, {'GET': 3, 'GETS': 3, 'G': 3, '': 3}], 'tables')


# ---- redis ---------------------------------------------------------------------------------------


def test_what_redis_answers_is_recorded(tmp):
    server = start(program('redis-server'), '--port', 0, '--unixsocket', tmp / 'socket', '--dir', tmp, '--save', '')
    with socket.socket(socket.AF_UNIX) as client:
        eventually(lambda: client.connect_ex(str(tmp / 'socket')) == 0, 'redis listens')
        recorder = start_record(server.pid, '-p', 'libc:write str(arg1, arg2)')
        answers = []
        for words in ('PING', 'ECHO hello', 'SET key value', 'GET key', 'GET none', 'ECHO ' + 'x' * 200, 'NONSENSE'):
            client.sendall(words.encode() + b'\r\n')
            answers.append(client.recv(4096))
        recorder.end(signal.SIGINT).ok()
    check_equal([row['arg1'] for row in arguments() if row['arg1'][0] in '+$-'],
                [as_text(answer) for answer in answers], 'answers')
    check_equal(answers[1], b'$5\r\nhello\r\n', 'what it answers')
    check_text_intact(server.pid)
    server.end(signal.SIGTERM).ok()


# ---- where memory ends ---------------------------------------------------------------------------

HOLE = r'''
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noipa)) void take(const char *text, long n, const long *length) { }
__attribute__((noipa)) void on_the_stack(void)
{
	volatile char text[300];
	static const long lengths[] = { 0, 1, 127, 128, 129, 130, -1, LONG_MIN };

	for (int i = 0; i < 300; i++)
		text[i] = "0123456789"[i % 10];
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		take((const char *)text, lengths[i], &lengths[i]);
	text[128] = 0;
	take((const char *)text, -1, &lengths[1]);
	text[5] = 0;
	take((const char *)text, 129, &lengths[1]);
	take((const char *)text, 5, &lengths[1]);
	take((const char *)text, 4, &lengths[1]);
}
int main(void)
{
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = page + 4096;
	const long five = 5;

	memset(page, 'a', 4096);
	munmap(end, 4096);
	take(end - 5, 5, &five);
	take(end - 5, 4, &five);
	take(end - 5, 6, &five);
	take(end - 5, -1, &five);
	take(end, 0, &five);
	take(end, 1, &five);
	take(NULL, 0, &five);
	take((char *)-1, 0, &five);
	take((char *)-1, 3, &five);
	take(end - 128, 128, &five);
	take(end - 128, 129, &five);
	take(end - 129, 129, &five);
	take(end - 129, LONG_MIN, &five);
	end[-2] = 0;
	take(end - 5, 100, &five);
	take(end - 5, 2, &five);
	take(end - 5, 5, (const long *)end);
	on_the_stack();
}
'''

A, TENS = 'a' * LIMIT, ('0123456789' * 13)[:LIMIT]
# the text of n bytes, that of as many as a number in memory says, and n
SEEN_OF_HOLE = [('"aaaaa"', '"aaaaa"', 5), ('"aaaa"', '"aaaaa"', 4), ('(fault)', '"aaaaa"', 6),
                ('(fault)', '"aaaaa"', -1), ('""', '(fault)', 0), ('(fault)', '(fault)', 1), ('""', '(fault)', 0),
                ('""', '(fault)', 0), ('(fault)', '(fault)', 3), (f'"{A}"', '"aaaaa"', 128),
                ('(fault)', '"aaaaa"', 129), (f'"{A}…"', '"aaaaa"', 129), (f'"{A}…"', '"aaaaa"', -2**63),
                ('"aaa"', '"aaa"', 100), ('"aa"', '"aaa"', 2), ('"aaa"', '(fault)', 5), ('""', '""', 0),
                ('"0"', '"0"', 1), (f'"{TENS[:127]}"', f'"{TENS[:127]}"', 127), (f'"{TENS}"', f'"{TENS}"', 128),
                (f'"{TENS}…"', f'"{TENS}…"', 129), (f'"{TENS}…"', f'"{TENS}…"', 130),
                (f'"{TENS}…"', f'"{TENS}…"', -1), (f'"{TENS}…"', f'"{TENS}…"', -2**63), (f'"{TENS}"', '"0"', -1),
                ('"01234"', '"0"', 129), ('"01234"', '"0"', 5), ('"0123"', '"0"', 4)]


def check_hole(*way):
    record('-o', 'hole.data', *way, '-p', './hole:take text=str(arg0, arg1) other=str(arg0, *(long *)arg2) arg1', '--',
           './hole').ok()
    check_equal(lines('hole.data'), [f'text={one} other={other} arg1={n}' for one, other, n in SEEN_OF_HOLE],
                f'what is seen {" ".join(way)}')
    shutil.rmtree('hole.data')


def build_hole(tmp):
    (tmp / 'hole.c').write_text(HOLE)
    run(program('gcc'), '-O1', '-o', 'hole', 'hole.c').ok()


def test_no_byte_is_read_that_is_not_wanted(tmp):
    build_hole(tmp)
    check_hole()
    check_hole('--fast-reads')
    check_hole('--no-rseq')


def test_the_kernel_reads_what_pads_read(tmp):
    need_uprobes()
    build_hole(tmp)
    check_hole('--backend', 'kernel')
    result = record('--backend', 'kernel', '-p', './hole:take buf(arg0, arg1)', '--', './hole')
    result.refused('has an array or a structure, which only code in the process itself can compute', 2)


def test_bytes_end_where_memory_does(tmp):
    build_hole(tmp)
    record('-p', './hole:take buf(arg0, arg1) arg1', '--', './hole').ok()
    fives = ' '.join(['61'] * 5)
    check_equal([line for line in lines() if line.split('arg1=')[1] in ('0', '3', '4', '5', '6')],
                [f'arg0={fives} arg1=5', f'arg0={fives[:-3]} arg1=4', f'arg0={fives} (fault) arg1=6', 'arg0= arg1=0',
                 'arg0= arg1=0', 'arg0= arg1=0', 'arg0=(fault) arg1=3', 'arg0=61 61 61 00 61 arg1=5',
                 'arg0= arg1=0', 'arg0=30 31 32 33 34 arg1=5', 'arg0=30 31 32 33 arg1=4'], 'bytes')


# ---- in the words of the source ------------------------------------------------------------------

SOURCE = r'''
#include <string.h>
#include <string_view>
#include <sys/sdt.h>

struct slice { const char *ptr; size_t len; };
static char answer[64];
extern "C" {
[[gnu::noipa]] void serve(const slice *s) { asm volatile("" :: "r"(s) : "memory"); }
[[gnu::noipa]] void view(const std::string_view &name) { asm volatile("" :: "r"(&name) : "memory"); }
[[gnu::noipa]] int fill(int n) { memcpy(answer, "answered by fill", 16); return n; }
[[gnu::noipa]] void mark(const slice *s) { DTRACE_PROBE2(shop, mark, s->ptr, s->len); }
}
int main()
{
	static const char words[] = "GET /one GET /two POST /three";
	static const slice slices[] = { { words, 8 }, { words + 9, 3 }, { words + 18, 4 }, { words, 0 } };

	for (const slice &s : slices) {
		serve(&s);
		view(std::string_view(s.ptr, s.len));
		fill((int)s.len);
		mark(&s);
	}
}
'''

TEXTS = ['"GET /one"', '"GET"', '"POST"', '""']


def test_slices_of_the_source_are_texts(tmp):
    (tmp / 'slices.cc').write_text(SOURCE)
    built = run(program('g++'), '-std=c++17', '-g', '-O1', '-o', 'slices', 'slices.cc')
    if 'sys/sdt.h' in built.err:
        skip('<sys/sdt.h> is not installed (systemtap-sdt-dev)')
    built.ok()
    for spec, name in (('-p ./slices:serve str(s->ptr, s->len)', 'ptr'),
                       ('-p ./slices:view str(name._M_str, name._M_len)', '_M_str'),
                       ('-m slices:mark str(arg0, arg1)', 'arg0')):
        option, words = spec.split(' ', 1)
        record('-o', 'texts.data', option, words, '--', './slices').ok()
        check_equal(lines('texts.data'), [f'{name}={text}' for text in TEXTS], spec)
        shutil.rmtree('texts.data')
    record('-r', './slices:fill str(answer, retval)', '-p', './slices:serve /str(s->ptr, s->len) == "GET"/ s->len',
           '-m', 'slices:mark /str(arg0, arg1) == "POST"/ arg1', '--', './slices').ok()
    check_equal(lines(), ['answer="answered"', 'len=3', 'answer="ans"', 'answer="answ"', 'arg1=4', 'answer=""'],
                'returns and filters')


RUST = '''
use std::hint::black_box;
#[inline(never)]
pub fn greet(name: &str) -> usize { black_box(name).len() }
fn main() {
    let all = String::from("GET /one");
    for n in [8, 3, 0] { greet(&all[..n]); }
}
'''

GO = '''
package main

//go:noinline
func greet(name string) int { return len(name) }
func main() {
	all := "GET /one"
	for _, n := range []int{8, 3, 0} { greet(all[:n]) }
}
'''


def test_strings_of_rust_are_texts(tmp):
    if not shutil.which('rustc'):
        skip('rustc is not installed')
    (tmp / 'app.rs').write_text(RUST)
    run('rustc', '-g', '-C', 'opt-level=1', '-o', 'app', 'app.rs', seconds=120).ok()
    record('-p', './app:app::greet name=str(%di, %si)', '--', './app').ok()
    check_equal(lines(), ['name="GET /one"', 'name="GET"', 'name=""'], 'texts')


def test_strings_of_go_are_texts(tmp):
    (tmp / 'app.go').write_text(GO)
    golang.build(tmp, 'app', 'app.go')
    record('-p', './app:main.greet name=str(%ax, %bx)', '--', './app').ok()
    check_equal(lines(), ['name="GET /one"', 'name="GET"', 'name=""'], 'texts')


ELEMENTS = r'''
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct point { int x, y; };
__attribute__((noipa)) void draw(const int *numbers, const struct point *points, int n)
{
	__asm__ volatile("" :: "r"(numbers), "r"(points), "r"(n) : "memory");
}
int main(void)
{
	int *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct point *points = malloc(1000);

	munmap(page + 1024, 4096);
	for (int i = 0; i < 1024; i++)
		page[i] = i - 1000;
	for (int i = 0; i < 100; i++)
		points[i] = (struct point){ i, -i };
	for (int n = 0; n < 3; n++)
		draw(page + 1020, points, n);
	draw(page + 1020, points, 4);
	draw(page + 1020, points, 5);
	draw(page + 900, points, 33);
	draw(page + 900, points, -1);
}
'''


def test_pieces_have_as_many_elements_as_a_value_says(tmp):
    (tmp / 'elements.c').write_text(ELEMENTS)
    run(program('gcc'), '-g', '-O1', '-o', 'elements', 'elements.c').ok()
    last, most = 'numbers={20, 21, 22, 23}', f'numbers={{{", ".join(str(i) for i in range(-100, -68))}}}'
    points = [f'{{x = {i}, y = {-i}}}' for i in range(17)]
    for way in ([], ['--fast-reads']):
        record('-o', 'pieces.data', *way, '-p', './elements:draw numbers[0..n-1] points[1..n]', '--',
               './elements').ok()
        check_equal(lines('pieces.data'), [
            'numbers={} points={}', f'numbers={{20}} points={{{points[1]}}}',
            f'numbers={{20, 21}} points={{{", ".join(points[1:3])}}}', f'{last} points={{{", ".join(points[1:5])}}}',
            f'{last} (fault) points={{{", ".join(points[1:6])}}}', f'{most} points={{{", ".join(points[1:17])}}}',
            'numbers={} points={}'
        ], f'pieces {way}')
        shutil.rmtree('pieces.data')


def test_an_unsigned_length_of_0_makes_an_empty_piece(tmp):
    """n - 1 is a large number then, of 32 bits."""
    (tmp / 'empty.c').write_text('__attribute__((noipa)) void take(int *v, unsigned n) { }\n'
                                 'int main(void) { int v[64] = { 1, 2, 3 }; take(v, 0); take(v, 2); return 0; }\n')
    run(program('gcc'), '-g', '-O1', '-o', 'empty', 'empty.c').ok()
    record('-p', './empty:take v[0..n-1] tail=v[5..n]', '--', './empty').ok()
    check_equal([re.search(r'(v=.*)', line)[1] for line in kymo('report', '--events').ok().out.splitlines()],
                ['v={} tail={}', 'v={1, 2} tail={}'])


# ---- explained -----------------------------------------------------------------------------------

EXPLAINED = '''
Types:
  str: text
    arg1: long
    arg2: long

Operations, on a stack of 64-bit values:
   0  register %si
   1  register %dx
   2  want
'''


def test_a_length_is_explained_and_refused_in_words(tmp):
    shown = kymo('explain', '-e', 'str(arg1, arg2)', 'libc.so.6', 'write').ok().out
    check(EXPLAINED.strip() in shown, 'what is shown', shown)
    for words, why in (('str(arg1, 1.5)', "this is a 'double', and a whole number is expected"),
                       ('buf(arg1, (char *)arg2)', 'a number is expected, and this is a pointer'),
                       ('buf(arg1)', "expected ',' and a number of bytes, as in buf(arg0, 64)")):
        record('-p', f'libc:write {words}', '--', 'true').refused(re.escape(why), 2)
