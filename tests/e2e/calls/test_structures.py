"""Structures are recorded as a whole: shown as gdb prints them, and structures of CTF in the trace."""
import json
import re

from kymotest import babeltrace, check, check_equal, check_matches, check_same, kymo, program, record, run, timeout
from shown import lines

C = r'''
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
enum state { IDLE, BUSY = 5, GONE = -1 };
enum mode { READ = 1, WRITE = 2, EXECUTE = 4 };
struct point { short x, y; };
struct deep { struct { struct { int a; struct point p; } in; } mid; int end; };
struct conn {
	int fd;
	char name[8];
	struct conn *peer;
	unsigned int flags : 3;
	int delta : 5;
	unsigned long wide : 40;
	union { long l; int i; struct point point; unsigned bits : 3; } u;
	struct { int hidden; union { int one; char two[4]; }; };
	enum state state, gone;
	enum mode mode;
	enum mode few : 3;
	bool is_open, is_shut : 1;
	char c, nul;
	unsigned char uc;
	int8_t sc;
	double load;
	float ratio;
	short ports[4];
	int table[2][3], zeros[24];
	char words[2][4];
	struct point at, points[2];
	struct deep deep;
	int (*call)(int);
};
struct node { struct node *next; int value; };
struct big { int a[100]; struct point p; int b[200]; long c; };
struct rest { uint8_t raw[12]; long double ld; int n, more[]; };
struct conn other = { .fd = 9, .name = "other" };
struct conn whole = {
	.fd = 7, .name = "eight888", .peer = &other, .flags = 6, .delta = -9, .wide = 0x123456789a, .u.l = -5000000000,
	.hidden = 11, .one = 0x41424344, .state = BUSY, .gone = GONE, .mode = READ | EXECUTE, .few = WRITE, .is_open = 1,
	.c = 'a', .uc = 200, .sc = -3, .load = 0.5, .ratio = 1.25, .ports = { 80, 443, -1, 8080 },
	.table = { { 1, 2, 3 }, { 4, 5, 6 } }, .zeros = { 1 }, .words = { "ab", "cd" }, .at = { 10, -20 },
	.points = { { 1, 2 }, { 3, 4 } }, .deep = { .mid.in = { 5, { 6, 7 } }, .end = 8 },
};
enum mode cube[2][1][3] = { { { READ, 0, EXECUTE } }, { { WRITE, EXECUTE, READ } } };
struct node nodes[3] = { { 0, 1 }, { &nodes[0], 2 }, { &nodes[1], 3 } };
struct big big = { .a = { 1, 2 }, .p = { 3, 4 } };
struct rest rest = { { 1, 2, 255 }, 2, 3, { 4, 5 } };
__attribute__((noinline)) int serve(struct conn *c, struct node *list, struct big *b, struct rest *r, struct point *hole)
{
	__asm__ volatile("" ::"r"(b), "r"(r), "r"(hole) : "memory");
	return c->fd + list->value;
}
int main(void)
{
	char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	__builtin_memset(pages, 1, 4096);
	munmap(pages + 4096, 4096);
	serve(&whole, nodes, &big, &rest, (struct point *)(pages + 4096 - 10)); /* a hole behind 2 and a half */
	return 0;
}
'''

CPP = r'''
namespace shop {
struct Empty {};
struct Base { long id; char tag; };
template <typename T> struct Box { T value; bool full; };
enum class Color : short { Red = 1, Blue = -7 };
struct Nested : Empty {};
struct Hider : Nested { const int *held; };
struct Twice : Base {};
struct Item : Empty, Twice {
	short late; Color color; Box<int> box; const int &count; union { int i; unsigned u; }; Hider hider; Nested none; static int sold;
};
int Item::sold = 3;
}
static int count = 4;
shop::Item item{ {}, { { 5, 't' } }, 6, shop::Color::Blue, { 7, true }, count, { 8 }, { {}, &count } };
extern "C" __attribute__((noinline)) void look(shop::Item *item) { asm volatile("" ::: "memory"); }
int main() { look(&item); }
'''

PRINTED = ('*c', 'c->at', 'c->u', 'c->points', 'c->deep.mid', '*c->peer', 'nodes', 'list[1]', 'c->table', 'c->words',
           'c->table[1]', 'cube')


def build(tmp, text, source, *command):
    (tmp / text).write_text(source)
    run(program(command[0]), '-g', '-w', '-no-pie', *command[1:], '-o', 'app', text, seconds=60).ok()


def gdb_prints(function, words):
    """What gdb prints there. It shows the text that a pointer leads to behind it."""
    settings = ('set print null-stop on', 'set print symbol off', 'set print static-members off')
    commands = (*settings, f'break {function}', 'run', *(f'print {word}' for word in words))
    options = [option for command in commands for option in ('-ex', command)]
    text = run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', *options, './app',
               seconds=120).ok().out
    return re.findall(r'(?m)^\$\d+ = (.*)$', text)


def values(line, n):
    """The values of the line that are called v0, v1 and so on."""
    return re.split(r' ?v\d+=', line)[1:n + 1]


@timeout(240)
def test_they_are_shown_as_gdb_prints_them(tmp):
    for command in (('gcc', '-O1'), ('gcc', '-O0', '-gdwarf-4'), ('clang', '-O1')):
        build(tmp, 'app.c', C, *command)
        found = []
        for first in range(0, len(PRINTED), 4):
            part = PRINTED[first:first + 4]
            record('-p', './app:serve ' + ' '.join(f'v{i}={word}' for i, word in enumerate(part)), '--', './app').ok()
            found += values(lines('app:serve')[0], len(part))
        for word, value, expected in zip(PRINTED, found, gdb_prints('serve', PRINTED), strict=True):
            check_same(value, expected, f'{word} with {command}')


@timeout(120)
def test_of_cpp_are_shown_as_gdb_prints_them(tmp):
    for command in (('g++', '-std=c++17', '-O1'), ('clang++', '-std=c++17', '-O0')):
        build(tmp, 'app.cc', CPP, *command)
        record('-p', './app:look v0=*item v1=item->box', '--', './app').ok()
        item, box = values(lines('app:look')[0], 2)
        told = gdb_prints('look', ['*item', 'item->box'])
        # Names of base classes have letters and digits only, and a reference is its address. gdb says also of classes
        # with a base that they have no members of their own.
        expected = re.sub(r'<shop::(\w+)>', r'<shop__\1>', told[0].replace('@', '').replace(', <No data fields>', ''))
        check_same(item, expected.replace('shop::Blue', 'Blue').replace('shop::Color::', ''),
                   f'an object with {command}')
        check_same(box, told[1], f'a member with {command}')


STRING = r'''
#include <memory>
#include <string>
#include <vector>
extern "C" __attribute__((noinline)) void look(const std::string &s, std::vector<int> &v, std::unique_ptr<int> &u) { asm volatile("" :: "r"(&s), "r"(&v), "r"(&u) : "memory"); }
int main()
{
	std::string s("a text");
	std::vector<int> v(3);
	auto u = std::make_unique<int>(7);
	look(s, v, u);
}
'''


@timeout(120)
def test_of_the_library_of_cpp_have_their_pointers(tmp):
    build(tmp, 'app.cc', STRING, 'g++', '-std=c++17', '-O1')
    record('-p', './app:look s v u', '--', './app').ok()
    string, vector, unique = re.split(r' ?\b[svu]=', lines('app:look')[0])[1:]
    check_matches(string, r'_M_p = 0x[0-9a-f]+\}, _M_string_length = 6, \{_M_local_buf = "a text"', 'a string')
    check_matches(vector, r'_M_start = 0x[0-9a-f]+, _M_finish = 0x[0-9a-f]+, _M_end_of_storage = 0x', 'a vector')
    check_matches(unique, r'_M_head_impl = 0x[0-9a-f]+\}', 'a pointer')
    check(not any('...' in text for text in (string, vector)), 'nothing is left out', string, vector)


def test_other_readers_have_structures(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    record('-p', './app:serve c->deep list[0..1] c->u x=*(struct conn *)%si', '--struct-depth', '2', '--', './app').ok()
    text = '\n'.join(babeltrace())
    check_matches(text, r'deep_present = \( "present" : container = 1 \), '
                  r'deep = \{ \{ mid = \{ in = \{ cut = \[ .* \] \} \}, end = 8 \} \}', 'a structure')
    check_matches(text, r'list_length = 2, list = \[ \[0\] = \{ next = 0x0, value = 1, .*\}, \[1\] = '
                  r'\{ next = 0x\w+, value = 2, .*\} \]', 'an array of structures')
    check_matches(text, r'u = \{ \{ l = -5000000000, i = \[ \], point = \[ \], bits = \[ \], union = \{ \} \} \}',
                  'a union')


def test_json_has_objects(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    record('-p', './app:serve *c list[0..1] c->at bad=*(struct conn *)8 *r', '--', './app').ok()
    row = json.loads(kymo('report', '--events', '--json').ok().out.splitlines()[0])
    args = row['args']
    check_equal(args['at'], {'x': 10, 'y': -20}, 'a structure')
    check_equal([node['value'] for node in args['list']], [1, 2], 'an array of structures')
    check_equal(args['bad'], None, 'memory that is not there')
    check_equal((args['r']['raw'], args['r']['n'], 'more' in args['r']), ('0102ff' + 18 * '0', 3, False), 'bytes')
    conn = args['c']
    check_equal((conn['name'], conn['delta'], conn['u']['i'], conn['one'], conn['two'], conn['table'], conn['words']),
                ('eight888', -9, -705032704, 0x41424344, 'DCBA', [[1, 2, 3], [4, 5, 6]], ['ab', 'cd']), 'members')
    check_equal(
        row['names'], {
            'c.state': 'BUSY',
            'c.gone': 'GONE',
            'c.mode': 'READ | EXECUTE',
            'c.few': 'WRITE',
            'c.is_open': 'true',
            'c.is_shut': 'false'
        }, 'names of values within')


def test_json_has_arrays_of_arrays(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    record('-p', './app:serve c->table c->words cube cube[1]', '--', './app').ok()
    row = json.loads(kymo('report', '--events', '--json').ok().out.splitlines()[0])
    check_equal(list(row['args'].values())[:4],
                [[[1, 2, 3], [4, 5, 6]], ['ab', 'cd'], [[[1, 0, 4]], [[2, 4, 1]]], [[2, 4, 1]]], 'arrays')
    check_equal((row['names']['cube[0][0][0]'], row['names']['cube[1][0][1]']), ('READ', 'EXECUTE'), 'their names')
    check_matches('\n'.join(babeltrace()), r'table_length = 2, table = \[ \[0\] = \{ anonymous1 = \[ \[0\] = 1, ', 'in CTF')


def test_members_without_a_meaning_are_bytes(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    record('-p', './app:serve *r', '--', './app').ok()
    check_matches(
        lines('app:serve')[0],
        r'^r=\{raw = \{0x1, 0x2, 0xff, (0x0, ){8}0x0\}, ld = \{(0x0, ){7}0x80, 0x0, 0x40, .*\}, n = 3\}$', 'the line')


def test_memory_that_is_not_there_is_a_fault(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    record('-p', './app:serve hole[0..3] *hole far=hole[2] none=*(struct node *)16', '--', './app').ok()
    check_equal(
        lines('app:serve'),
        ['hole={{x = 257, y = 257}, {x = 257, y = 257}} (fault) value2={x = 257, y = 257} far=(fault) none=(fault)'],
        'the line')


def test_depth_and_size_can_be_set(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    result = record('--struct-depth', '1', '-p', './app:serve c->deep *b', '--', './app').ok()
    check_equal(
        lines('app:serve'),
        ['deep={mid = {...}, end = 8} b={a = {1, 2, 0 <repeats 98 times>}, p = {...}, ...}'], 'the line')
    check_matches(
        result.err, r"kymo: warning: '\*b' is a 'struct big' of 1216 bytes, and the first 404 are recorded: 2 of 4 "
        r'members; name the others that you need', 'the sentence')
    result = record('-p', './app:serve c->deep c->u', '--struct-size', '8', '--', './app').ok()
    check_equal(lines('app:serve'), [
        'deep={mid = {in = {a = 5, p = {x = 6, y = 7}}}, ...} '
        'u={l = -5000000000, i = -705032704, point = {x = 3584, y = -10758}, bits = 0}'
    ], 'within 8 bytes')
    result = record('-p', './app:serve c->deep', '--struct-size', '7', '--', './app')
    check('this has 12 bytes, and at most 7 are recorded of it' in result.err, 'a first member that is too large',
          result.err)
    for option, value, sentence in (('--struct-depth', '0', 'takes a number from 1 to 16'),
                                    ('--struct-depth', '17', 'takes a number from 1 to 16'),
                                    ('--struct-size', '513', 'takes a number of bytes from 1 to 512'),
                                    ('--struct-size', 'x', 'takes a number of bytes from 1 to 512')):
        result = record(option, value, '-p', './app:serve *c', '--', './app')
        check_equal(result.status, 2, f'status of {option} {value}')
        check(f"{option} {sentence}, not '{value}'" in result.err, f'sentence about {option} {value}', result.err)


def test_structures_that_are_too_large_are_refused(tmp):
    build(tmp, 'app.c', C, 'gcc', '-O1')
    for words, sentence in (
        ('list[0..99]', 'this has 1600 bytes, and at most 512 are recorded of it; write members or a piece, such as '
         'buf(p, 512)'),
        ('*c x=*c y=*b z=*b',
         'the probe would read more than 1100 bytes of memory, which a thread\'s stack may not hold; record fewer '
         'strings and bytes'),
        ('*c:u64', 'memory as a whole has no type; leave it out, or write one of its parts'),
        ('c->nmae', "'struct conn' has no member 'nmae'; it has: name, "),
        ('*c+1', "this is a whole 'struct conn'; write one of its members")):
        result = record('-p', f'./app:serve {words}', '--', './app')
        check_equal(result.status, 2, f'status of {words}')
        check(sentence in result.err, f'sentence about {words}', result.err)
