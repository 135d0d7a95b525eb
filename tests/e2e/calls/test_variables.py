"""Variables of the source have the values that gdb prints at the same locations, in programs that the test generates.
"""
import json
import random
import re

from kymotest import check, check_equal, check_same, events, kymo, program, record, run, sampled, share, timeout
from seeds import seed
from variables import gdb_says, same

# ---- programs ------------------------------------------------------------------------------------

INTEGERS = {
    'char': 8, 'signed char': 8, 'unsigned char': 8, 'short': 16, 'unsigned short': 16, 'int': 32, 'unsigned int': 32,
    'long': 64, 'unsigned long': 64, 'long long': 64, 'size_t': 64, 'count_t': 16
}
N_STRUCTS, N_CALLS, PER_PROBE = 6, 3, 8

HEAD = r'''
#include <stddef.h>
typedef unsigned short count_t;
enum color { RED, GREEN = 7, BLUE = -3 };
enum size { SMALL, LARGE = 4000000000u };
__attribute__((noinline)) void sink(const void *a, const void *b, const void *c) { __asm__ volatile("" :: "r"(a), "r"(b), "r"(c) : "memory"); }
'''


class Corpus:
    """Structures with values for their members, and a function for each that sees two of them."""
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.text = [HEAD]
        self.leaves = []  # of each structure: what leads to its integers, [('.m0', bits)] …
        for k in range(N_STRUCTS):
            self.add_struct(k)
        for k in range(N_STRUCTS):
            self.add_function(k)
        self.add_main()

    def value(self, bits):
        return str(
            self.rng.choice([
                0, 1,
                self.rng.getrandbits(min(bits, 62)),
                self.rng.getrandbits(max(bits - 1, 1)), 2**(min(bits, 32) - 1) - 1
            ]))

    def member(self, k, i):
        """Its declaration, and its leaves."""
        name, kind = f'm{i}', self.rng.randrange(10)
        type_ = self.rng.choice(list(INTEGERS))
        bits = INTEGERS[type_]
        if kind == 0:
            return f'{type_} {name}[5];', [(f'.{name}[{j}]', bits) for j in (0, 4)]
        if kind == 1:
            return f'enum color {name};', [(f'.{name}', 3)]
        if kind == 2:
            return f'_Bool {name};', [(f'.{name}', 1)]
        if kind in (3, 4):
            type_, width = self.rng.choice([('unsigned int', 32), ('int', 32), ('unsigned long', 64),
                                            ('unsigned char', 8)])
            size = self.rng.randrange(1, width)
            return f'{type_} {name} : {size};', [(f'.{name}', size)]
        if kind == 5 and k:
            inner = self.rng.randrange(k)
            return f'struct s{inner} {name};', [(f'.{name}{leaf}', bits) for leaf, bits in self.leaves[inner][:2]]
        if kind == 6:
            return f'union {{ long l; int i; unsigned char b[8]; }} {name};', [(f'.{name}.l', 62), (f'.{name}.i', 0),
                                                                               (f'.{name}.b[3]', 0)]
        if kind == 7:
            return f'struct {{ short a{i}; {type_} b{i}; }};', [(f'.a{i}', 15), (f'.b{i}', bits)]
        if kind == 8:
            return f'int {name}[2][3];', [(f'.{name}[1][2]', 31), (f'.{name}[0][1]', 31)]
        return f'{type_} {name};', [(f'.{name}', bits)]

    def add_struct(self, k):
        members = [self.member(k, i) for i in range(7)]
        self.leaves.append([leaf for _, leaves in members for leaf in leaves])
        self.text.append(
            f'struct s{k} {{ {" ".join(declaration for declaration, _ in members)} struct s{k} *next; int *counts; }};\n'
            f'struct s{k} global{k}; static struct s{k} h{k}; static int counts{k}[4];')

    def add_function(self, k):
        self.text.append(f'''
__attribute__((noinline)) long f{k}(struct s{k} *p, int a, long b2, enum color e, unsigned char c, short d3x)
{{
	static int calls;
	struct s{k} local = *p;
	long s1 = b2 * 3 + a;
	int table[4] = {{ a, c, d3x, e }};
	struct s{k} *other = p->next;
	calls += 5;
	sink(&local, table, &s1); /* here {k} */
	sink(other, &calls, &global{k});
	return s1 + table[1] + (long)(size_t)other + e + c + d3x;
}}''')

    def add_main(self):
        set_ = []
        for k in range(N_STRUCTS):
            for variable in (f'global{k}', f'h{k}'):
                set_ += [f'{variable}{leaf} = {self.value(bits)};' for leaf, bits in self.leaves[k] if bits]
                set_.append(
                    f'{variable}.next = &{"h" if variable[0] == "g" else "global"}{k}; {variable}.counts = counts{k};'
                )
            set_ += [f'counts{k}[{i}] = {self.value(31)};' for i in range(4)]
        calls = [
            f'f{k}(&{self.rng.choice(["global", "h"])}{k}, {self.value(31)}, -{self.value(60)}, {self.rng.choice(["RED", "GREEN", "BLUE"])}, {self.value(8)}, {self.value(15)});'
            for _ in range(N_CALLS) for k in range(N_STRUCTS)
        ]
        self.text.append('int main(void)\n{\n\t' + '\n\t'.join(set_) + '\n\t' + '\n\t'.join(calls) + '\n}\n')

    def at_entry(self, k):
        """What is asked for where function `k` is entered."""
        leaves = [leaf for leaf, _ in self.leaves[k]]
        words = [
            'a', 'b2', 'e', 'c', 'd3x', *(f'p->{leaf[1:]}' for leaf in leaves), *(f'p->next->{leaf[1:]}'
                                                                               for leaf in leaves[:3]),
            *(f'global{k}{leaf}' for leaf in leaves[:3]), *(f'h{k}{leaf}' for leaf in leaves[3:6]),
            f'counts{k}[2]', 'p->counts[1]', '*p->counts', 'p->next->next == p', f'p == &global{k}', 'sizeof(*p)',
            'a + b2 * 2', 'c > 7 && d3x < 5', f'&p->counts[3] - counts{k}', 'e == GREEN',
            f'(long)p->next - (long)&h{k}', f'*(counts{k} + 3)', '(unsigned char)b2', 'a < p->counts[0]'
        ]
        return words

    def within(self, k):
        """The same behind the function's first lines."""
        leaves = [leaf for leaf, _ in self.leaves[k]]
        return [
            *(f'local{leaf}' for leaf in leaves[:8]), 's1', 'table[1]', 'table[3] - table[0]', 'calls',
            'other == p->next', *(f'other->{leaf[1:]}' for leaf in leaves[:4]), f'global{k}{leaves[-1]}', 'a', 'b2',
            'sizeof(local)', 'local.next == other', '*local.counts', '&table[2] - table', 'local.counts[calls / 5]'
        ]


# ---- gdb -----------------------------------------------------------------------------------------

def locations(corpus, tmp):
    """Where lines of the program begin, as FUNCTION+OFFSET: what gdb takes for them."""
    lines = [number for number, text in enumerate((tmp / 'app.c').read_text().splitlines(), 1) if '/* here' in text]
    words = [word for line in lines for word in ('-ex', f'info line app.c:{line}')]
    shown = run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', *words, './app',
                seconds=60).ok().out
    found = re.findall(r'starts at address 0x[0-9a-f]+ <(f\d+)\+(\d+)>', shown)
    check_equal(len(found), len(lines), f'lines that begin somewhere: {shown}')
    return {int(function[1:]): f'{function}+{offset}' for function, offset in found}


# ---- both ----------------------------------------------------------------------------------------


def compare(corpus, tmp, build, probes):
    """probes: [(kymo's location, gdb's, expressions)]. How many variables had the same values, and those that kymo
    does not know."""
    told = gdb_says(['./app'], [(where, [where], words) for _, where, words in probes])
    n, unknown = 0, []
    for location, where, words in probes:
        rows = told[where]
        check_equal(len(rows), N_CALLS, f'hits of {where} with {build}')
        known = [i for i in range(len(words)) if all(row[i] is not None for row in rows)]
        while known:
            specs = [(f'e{first}', known[first:first + PER_PROBE]) for first in range(0, len(known), PER_PROBE)]
            options = [
                option for name, part in specs
                for option in ('-p', f'p:{name} ./app:{location} ' + ' '.join(f'v{i}=({words[i]})' for i in part))
            ]
            result = record(*options, '--', './app')
            if not result.status:
                break
            bad = re.search(r'(?m)^ .*\n( +)\^', result.err)
            check(bad, f'a sentence about a place of {options}', result)
            line = bad[0].splitlines()[0]
            column = len(bad[1])
            i = int(re.findall(r'v(\d+)=', line[:column])[-1])
            unknown.append((build, location, words[i], result.err.splitlines()[0]))
            known.remove(i)
        found = {}
        for event in events():
            for name, part in specs:
                if event.name == name:
                    for i in part:
                        found.setdefault(i, []).append(event[f'v{i}'])
        for i in known:
            expected = [row[i] for row in rows]
            check(
                len(found.get(i, [])) == N_CALLS and all(map(same, found[i], expected)),
                f'{words[i]} at {location} with {build}: kymo {found.get(i)}, gdb {expected}')
            n += 1
    return n, unknown


def build(tmp, corpus, *command):
    (tmp / 'app.c').write_text('\n'.join(corpus.text))
    run(program(command[0]), *command[1:], '-w', '-o', 'app', 'app.c', seconds=120).ok()


BUILDS = (('gcc', '-O0', '-gdwarf-5'), ('gcc', '-O2', '-gdwarf-5'), ('gcc', '-O0', '-gdwarf-4'),
          ('clang', '-O0', '-gdwarf-5'), ('clang', '-O2', '-gdwarf-4'))


@sampled
@timeout(600)
def test_variables_have_the_values_that_gdb_prints(tmp):
    n, unknown = 0, []
    seed()
    builds = share(enumerate(BUILDS), 2)
    for number, command in builds:
        corpus = Corpus(number)
        build(tmp, corpus, *command)
        here = locations(corpus, tmp)
        probes = []
        for k in range(N_STRUCTS):
            # gdb's frame is right behind the beginning of a function without optimization; kymo knows parameters at the
            # entry
            probes.append((f'f{k}', f'f{k}' if '-O0' in command else f'*f{k}', corpus.at_entry(k)))
            probes.append((here[k], f'*(char *)f{k}+{here[k].partition("+")[2]}', corpus.within(k)))
        more, refused = compare(corpus, tmp, ' '.join(command), probes)
        n += more
        unknown += refused
    # what gdb finds in the caller's frame, by the call sites of DWARF 5, is not there to be read at the probe
    others = [
        row for row in unknown if not row[3].endswith('is told only by what was passed at the entry: record it there')
    ]
    check(not others, 'what gdb alone knows', others)
    check(n >= 300 * len(builds), f'{n} values are compared')


ABSOLUTE = r'''
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long work(long a, int b)
{
	long size = labs(a);
	int small = abs(b);
	long sum = size - small;
	__asm__ volatile("nop" ::: "memory"); /* here */
	return a + b;
}
int main(void) { printf("%ld\n", work(-5, 7) + work(6, -8) + work(0, 0) + work(-1L << 62, -2147483647)); }
'''


@timeout(60)
def test_absolute_values_that_no_code_computes_are_those_of_gdb(tmp):
    """gcc tells them by DW_OP_abs."""
    (tmp / 'app.c').write_text(ABSOLUTE)
    run(program('gcc'), '-O2', '-g', '-o', 'app', 'app.c', seconds=60).ok()
    words = ['size', 'small', 'sum']
    told = gdb_says(['./app'], [('here', ['app.c:9'], words)])['here']
    check_equal(told, [[5, 7, -2], [6, 8, -2], [0, 0, 0], [2**62, 2**31 - 1, 2**62 - 2**31 + 1]], 'what gdb tells')
    record('-p', 'p:here ./app:app.c:/here/ size small sum', '--', './app').ok()
    check_equal([[event[word] for word in words] for event in events()], told, 'what kymo records')


# ---- C++, texts, wholes, returns -----------------------------------------------------------------

CPP = r'''
#include <cstdio>
#include <cstring>
namespace net {
int limit = 77;
static long hits;
struct address { unsigned char octets[4]; unsigned short port; };
class base { protected: int kind = 3; };
class conn : base {
public:
	conn(int fd, const char *name, conn *peer) : fd_(fd), name_(name), peer_(peer), flags_(fd & 7) { memcpy(address_.octets, "\x7f\0\0\1", 4); address_.port = 80 + fd; snprintf(text_, sizeof(text_), "text-%d-%s", fd, name); }
	__attribute__((noinline)) int send(const address &to, int n);
	__attribute__((noinline)) conn *peer();
	static int total;
private:
	int fd_;
	const char *name_;
	conn *peer_;
	unsigned flags_ : 3;
	address address_;
	double load_ = 0.5;
	char text_[24];
};
int conn::total = 5;
conn *conn::peer() { asm volatile("" ::: "memory"); return peer_; }
int conn::send(const address &to, int n)
{
	hits++;
	asm volatile("" :: "r"(&to), "r"(n) : "memory");
	return n > 2 ? -n : n + kind;
}
}
int main()
{
	net::conn one(3, "one", nullptr), two(4, "a longer name of two", &one);
	net::address to = { { 10, 0, 0, 7 }, 8080 };
	for (int i = 0; i < 4; i++)
		printf("%d\n", (i % 2 ? two : one).send(to, i) + (two.peer() != nullptr));
}
'''

SHOWN = """ints fd_=3 value2=(fault) flags_=3 port=8080 octets=7 limit=77 kind=3 n=0
texts name_="one" short="one" text_="text-3-one" value4=6f 6e octets=7f 00 00 01 value6=0a 00
some n=0
peers fd_=3 name_="one"
ints fd_=4 value2=3 flags_=4 port=8080 octets=7 limit=77 kind=3 n=1
texts name_="a longer name of two" short="a l…" text_="text-4-a longer name of" value4=61 20 octets=7f 00 00 01 value6=0a 00
others load_=0.5 text_='4'
peers fd_=3 name_="one"
ints fd_=3 value2=(fault) flags_=3 port=8080 octets=7 limit=77 kind=3 n=2
texts name_="one" short="one" text_="text-3-one" value4=6f 6e octets=7f 00 00 01 value6=0a 00
some n=2
peers fd_=3 name_="one"
ints fd_=4 value2=3 flags_=4 port=8080 octets=7 limit=77 kind=3 n=3
texts name_="a longer name of two" short="a l…" text_="text-4-a longer name of" value4=61 20 octets=7f 00 00 01 value6=0a 00
others load_=0.5 text_='4'
back retval=-3
peers fd_=3 name_="one"
"""

LIST = r'''
enum kind { TREE, LEAF };
int walks_made, deptha;
struct node { struct node *next; enum kind kind : 2; unsigned size : 20; char text[8]; };
__attribute__((noinline)) int walk(struct node *node, int depth) { __asm__ volatile("" :: "r"(node), "r"(depth) : "memory"); return depth; }
int main(void) { struct node node = { &node }; return walk(&node, 0); }
'''


@timeout(120)
def test_members_texts_and_returns_of_a_program_in_cpp(tmp):
    (tmp / 'app.cc').write_text(CPP)
    for command in (('g++', '-O0'), ('g++', '-O1', '-gdwarf-4'), ('clang++', '-O1')):
        run(program(command[0]), *command[1:], '-g', '-w', '-o', 'app', 'app.cc', seconds=120).ok()
        where = './app:net::conn::send'
        record(
            '-p', f'p:ints {where} fd_ peer_->fd_ this->flags_ to.port to.octets[3] net::limit kind n', '-p',
            f'p:texts {where} str(name_) short=str(name_,3) str(text_) buf(name_,2) address_.octets to.octets[0..1]',
            '-p', f'p:some {where} /str(name_) == "one" && peer_ == 0/ n', '-p',
            f'p:others {where} /str(name_) != "one"/ load_ text_[5]', '-r', f'r:back {where} /retval < 0/ retval', '-r',
            'r:peers ./app:net::conn::peer retval->fd_ str(retval->name_)', '--', './app').ok()
        found = [
            re.sub(r'^.*?\] +\d+ app ', '', line) for line in kymo('report', '--events').ok().out.splitlines()
            if re.search(r'\] +\d+ app ', line)
        ]
        check_same('\n'.join(found) + '\n', SHOWN, f'events with {command}')


@timeout(60)
def test_names_of_a_location_are_explained(tmp):
    (tmp / 'app.c').write_text(LIST)
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'app', 'app.c', seconds=60).ok()
    check_same(
        kymo('explain', '-e', 'node->next->kind == LEAF', './app', 'walk').ok().out, """Types:
  ==: int
    ->kind: enum kind:2
      ->next: struct node *
        node: struct node *
    1: enum kind

Operations, on a stack of 64-bit values:
   0  register %di
   1  load 64
   2  value 8
   3  add
   4  load 32
   5  value 62
   6  shift-left
   7  value 62
   8  shift-right unsigned
   9  value 1
  10  equal

It may have no value: by a division by zero, by memory that is not there, or where the kernel may not be asked.
A filter lets nothing through then, and an argument is recorded as (fault).
""", 'stdout')
    for words, sentence in (
        ('node->nxet', "column 7: 'struct node' has no member 'nxet'; it has: next, kind, size, text"),
        ('noed', "column 1: there is no variable 'noed' here; visible are: node, depth"),
        ('depths', "column 1: there is no variable 'depths' here; visible are: depth, node"),
        ('walk_made', "column 1: there is no variable 'walk_made' here; visible are: node, depth; the nearest global "
         'variable is walks_made'),
        ('node->kind == LEAVE',
         "column 15: there is no 'LEAVE', and enum kind has none of that name; it has: LEAF, TREE"),
        ('(struct noed *)arg0', "column 2: there is no type 'struct noed' in the debug information, and the "
         "nearest is 'node'; --types FILE reads those of FILE, too"),
        ('node.kind', "column 5: this is a 'struct node *': write '->' in place of '.'"),
        ('node->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->next->kind',
         'column 1: the expression has more than 20 divisions and reads of memory'),
        ('arg0->x',
         "column 5: '->' is for structures and unions, and this is a 'long'; convert it, as in ((struct conn *)arg0)->fd"
         )):
        result = kymo('explain', '-e', words, './app', 'walk')
        check_equal(result.status, 2, f'status of {words}')
        check_same(result.err.splitlines()[0], f'kymo: {sentence}', f'sentence about {words}')
    for spec, sentence in (
        ('./app:walk buf(node,1000)',
         'column 12: this has 1000 bytes, and at most 512 are recorded of it; write members or a piece, such as buf(p, 512)'
         ), ('./app:walk /node->text[0..1]/',
             'column 13: a filter is a number or a comparison, such as /arg0 > 4K/ or /str(arg0) == "x"/'),
        ('./app:walk /node->text == "a"/',
         'column 24: a text is compared with one in memory by == or !=, as in str(arg0) == "text"'),
        ('./app:walk node->text:string', 'column 23: write str(node->text) for the text that it points to'),
        ('./app:walk *node:u64', 'column 18: memory as a whole has no type; leave it out, or write one of its parts'),
        ('./app:wal* node->kind',
         "column 12: variables by name ('node') are known at one location of a file; write arg0, retval, %REGISTER or $stack0"
         )):
        record('-p', spec, '--', './app').wrong_words(sentence)
