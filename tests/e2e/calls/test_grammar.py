"""The kernel's grammar: definitions that tracefs and kymo are given alike record the same values, as do the words for
the thread that runs a probe."""
import itertools
import json
import os
import re

import kernelcount
from kymotest import (at_end, check, check_equal, check_matches, events, kymo, need_root, program, record,
                      report_json, run, skip, timeout)

PROGRAM = r'''
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct inner { const char *name; struct inner *next; int16_t small; uint8_t bytes[6]; };
struct outer { uint32_t flags; int32_t count; struct inner *inner; char text[24]; int64_t large; };
__attribute__((noipa)) long look(struct outer *o, long a, int b, unsigned char c, const char *name, short d, long seventh, long eighth)
{
	return o->count + a + b + c + name[0] + d + seventh + eighth;
}
int main(void)
{
	static struct inner inners[4];
	static struct outer outers[4];
	long sum = 0;

	for (int i = 0; i < 4; i++) {
		inners[i] = (struct inner){ i % 2 ? "odd one" : "an even one", &inners[(i + 1) % 4], (int16_t)(i * -9000), { i, 200, i + 2, 128, 5, 255 } };
		outers[i] = (struct outer){ 0xdeadbeefu >> i, -i, &inners[i], "", INT64_MIN >> (16 * i) };
		snprintf(outers[i].text, sizeof(outers[i].text), "text %d", i * 111);
	}
	for (int i = 0; i < 4; i++)
		sum += look(&outers[i], (long)i << 40 | 0x8182838485l, -i, (unsigned char)(250 + i), inners[i].name, (short)(i - 2), -1000 - i, i * 77);
	return sum == 42;
}
'''

REGISTERS = ['%di', '%si', '%dx', '%cx', '%r8', '%r9', '%sp']
TYPES = [sign + bits for sign in 'usx' for bits in ('8', '16', '32', '64')]
BITS = [
    'b1@0/8', 'b3@4/8', 'b8@0/8', 'b5@7/16', 'b16@0/16', 'b1@31/32', 'b13@9/32', 'b32@0/32', 'b17@33/64', 'b64@0/64'
]


def definitions():
    """Each a value as both write it."""
    yield from (f'{register}:{kind}' for register, kind in zip(itertools.cycle(REGISTERS), TYPES + TYPES))
    yield from (f'%si:{bits}' for bits in BITS)
    yield from ('$stack', '$stack0', '$stack1:s64', '$stack2:u64', '$stack1:u16')
    yield from ('\\42', '\\-1:s32', '\\0x7fff:u16', '\\255:x8')
    yield from (f'+{at}(%di):{kind}' for at, kind in zip((0, 4, 8, 16, 40, 0, 2, 4, 40, 44, 1, 3), TYPES))
    yield from (f'+0(%di):{bits}' for bits in BITS)
    yield from (f'+{at}(+8(%di)):{kind}'
                for at, kind in ((16, 's16'), (18, 'u8'), (19, 'x8'), (21, 's8'), (16, 'u32'), (16, 'b4@3/16')))
    yield from (f'-{at}(%di):{kind}' for at, kind in ((8, 'x64'), (4, 'u32')))
    yield from ('+16(+8(+8(%di))):s16', '+16(+8(+8(+8(%di)))):s16', '+8($stack):s64', '+0($stack):x64', '+u0(%di):u32',
                '+u16(+u8(%di)):s16')
    yield from ('+0(%r8):string', '+0(+0(+8(%di))):string', '+16(%di):string', '+0(+0(+8(+8(%di)))):string',
                '+3(%r8):string', '+u0(%r8):ustring', '+0(%r8):ustring', '+u20(%di):ustring')
    yield from ('$comm', '$comm:string', '$COMM', '@+0:x32', '@+0:u16', '@+16:b7@1/16', '@+1:x8')


def is_text(definition):
    return definition.endswith('string') or definition in ('$comm', '$COMM')


def by_the_kernel(path, chunks):
    """The values of each definition at each call, by an event of tracefs that one instance records."""
    root = kernelcount.tracefs()
    group, offset = f'kymo_test_{os.getpid()}_900', kernelcount.function_offset(path, 'look')
    for i, chunk in enumerate(chunks):
        words = ' '.join(f'v{k}={definition}' for k, definition in enumerate(chunk))
        try:
            kernelcount.append(root / 'dynamic_events', f'p:{group}/e{i} {path}:{offset:#x} {words}\n')
        except OSError as error:
            skip(f'this kernel does not take {words}: {error}')
        at_end(kernelcount.append, root / 'dynamic_events', f'-:{group}/e{i}\n')
    instance = root / 'instances' / group
    instance.mkdir()
    at_end(instance.rmdir)
    enable = instance / 'events' / group / 'enable'
    enable.write_text('1')
    at_end(enable.write_text, '0')
    run(path)
    enable.write_text('0')
    values = {}
    for line in (instance / 'trace').read_text('latin-1').splitlines():
        match = re.search(r' e(\d+): \([^)]*\) (.*)$', line)
        if match:
            found = re.findall(r'v(\d+)=(\{[^}]*\}|"[^"]*"|\S+)', match[2])
            for k, value in found:
                values.setdefault(chunks[int(match[1])][int(k)], []).append(value)
    return values


def number(text, definition):
    """Of the kernel's text: unsigned, as wide as its type says."""
    kind = definition.rpartition(':')[2] if ':' in definition else 'x64'
    return int(text, 0) % 2**int(re.search(r'\d+$', kind)[0])


@timeout(120)
def test_definitions_record_what_tracefs_records(tmp):
    need_root()
    (tmp / 'p.c').write_text(PROGRAM)
    run(program('gcc'), '-O1', '-no-pie', '-o', 'p', 'p.c', seconds=60).ok()
    path = str(tmp / 'p')
    wanted = list(dict.fromkeys(definitions()))
    check(len(wanted) >= 80, 'definitions', len(wanted))
    chunks = [wanted[i:i + 8] for i in range(0, len(wanted), 8)]
    # the stack lies elsewhere in each run, and what is on it as well
    moves = {
        definition for definition in wanted
        if definition.startswith(('%sp', '$stack')) and definition not in ('$stack1:s64', '$stack2:u64', '$stack1:u16')
    }
    kernel = by_the_kernel(path, chunks)
    words = [
        word for i, chunk in enumerate(chunks)
        for word in ('-p', f'e{i} {path}:look ' + ' '.join(f'v{k}={definition}' for k, definition in enumerate(chunk)))
    ]
    words = [re.sub(r'^e(\d+) ', r'p:e\1 ', word) for word in words]
    record('--backend', 'inproc', *words, '--', path)
    mine = {}
    for event in events():
        for k, definition in enumerate(chunks[int(event.name[1:])]):
            value = event.fields[f'v{k}']
            mine.setdefault(definition, []).append(value if is_text(definition) else number(value, definition))
    check_equal(sum(len(values) for values in mine.values()), 4 * len(wanted), 'values')
    for definition in wanted:
        theirs = [value if is_text(definition) else number(value, definition) for value in kernel[definition]]
        check_equal(len(theirs), 4, f'hits that the kernel has recorded for {definition}')
        if definition not in moves:
            check_equal(mine[definition], theirs, f'values of {definition}')


def test_an_offset_in_the_file_is_that_of_a_library_anywhere():
    record('--backend', 'inproc', '-p', 'libc:malloc magic=@+0:x32 class=@+4:u8', '--', '/bin/ls').ok()
    values = {(event['magic'], event['class']) for event in events()}
    check_equal(values, {(0x464c457f, 2)}, 'the first bytes of libc')


def test_a_text_is_recorded_as_it_is_given():
    """tracefs takes it, and has (fault) for it in programs."""
    record('--backend', 'inproc', '-p', 'libc:malloc a=\\"text" b=\\"":string n=arg0 c=\\"two words"', '--',
           '/bin/ls').ok()
    texts = {tuple(event.fields[name] for name in 'abc') for event in events()}
    check_equal(texts, {('"text"', '""', '"two words"')}, 'texts')


ARRAYS = [
    '+0(%di):u32[2]', '+4(%di):s32[1]', '+18(+8(%di)):u8[6]', '+18(+8(%di)):s8[6]', '+16(+8(%di)):s16[3]',
    '+40(%di):s64[1]', '+0(%di):x16[5]', '+0(%di):u64[2]', '+0(%r8):char', '+16(%di):char', '%dx:char'
]


def elements(text, definition):
    """Of the kernel's text, or of what JSON has: unsigned, as wide as the type says."""
    found = re.findall(r"'(?:\\x[0-9a-f]+|.)'|-?\w+", text) if isinstance(
        text, str) else text if isinstance(text, list) else [text]
    codes = [ord(word[1]) if isinstance(word, str) and word.startswith("'") else word for word in found]
    bits = re.search(r':[usx](\d+)', definition)
    return [int(str(code), 0) % 2**int(bits[1] if bits else 8) for code in codes]


@timeout(120)
def test_arrays_and_characters_record_what_tracefs_records(tmp):
    need_root()
    (tmp / 'p.c').write_text(PROGRAM)
    run(program('gcc'), '-O1', '-no-pie', '-o', 'p', 'p.c', seconds=60).ok()
    path = str(tmp / 'p')
    chunks = [ARRAYS[i:i + 6] for i in range(0, len(ARRAYS), 6)]
    kernel = by_the_kernel(path, chunks)
    record(
        '--backend', 'inproc',
        *(word for i, chunk in enumerate(chunks)
          for word in ('-p', f'p:e{i} {path}:look ' + ' '.join(f'v{k}={definition}'
                                                               for k, definition in enumerate(chunk)))), '--', path)
    mine = {}
    for line in kymo('report', '--events', '--json').ok().out.splitlines():
        row = json.loads(line)
        for k, definition in enumerate(chunks[int(row['name'][1:])]):
            mine.setdefault(definition, []).append(elements(row['args'][f'v{k}'], definition))
    for definition in ARRAYS:
        theirs = [elements(text, definition) for text in kernel[definition]]
        check_equal(len(theirs), 4, f'hits that the kernel has recorded for {definition}')
        check_equal(mine[definition], theirs, f'values of {definition}')


ELEMENTS = r'''
__attribute__((noipa)) long look(const char **names, unsigned *flags) { return names[1][0] + flags[1]; }
unsigned shared[2] = { 0xfedcba98, 77 };
int main(void)
{
	static const char *const words[] = { "one", "the second of them", "", "4" };
	long sum = 0;

	for (int i = 0; i < 4; i++) {
		const char *names[] = { words[i], words[3 - i], "last" };
		unsigned flags[] = { 0xdeadbeefu >> i, 0x12345678u + (unsigned)i };
		sum += look(names, flags);
	}
	return sum == 42;
}
'''

# (definition, how many arguments it becomes)
OF_ELEMENTS = [('+0(%di):string[3]', 3), ('+8(%di):ustring[2]', 2), ('+0(%di):string[1]', 1), ('+0(%si):b3@4/32[2]', 2),
               ('+0(%si):b5@7/16[4]', 4), ('%cs', 0), ('%ss:u16', 0), ('%orig_ax', 0), ('+4(\\SHARED):u32', 0),
               ('%orig_ax:s32', 0), ('+0(\\SHARED):b6@2/8[2]', 2)]


@timeout(120)
def test_texts_and_bit_fields_of_arrays_are_arguments_of_their_own(tmp):
    need_root()
    (tmp / 'p.c').write_text(ELEMENTS)
    run(program('gcc'), '-O1', '-no-pie', '-o', 'p', 'p.c', seconds=60).ok()
    path = str(tmp / 'p')
    shared = re.search(r'(\w+) D shared', run(program('nm'), path).ok().out)[1]
    wanted = [(definition.replace('SHARED', f'0x{shared}'), n) for definition, n in OF_ELEMENTS]
    chunks = [[definition for definition, _ in part] for part in (wanted[:4], wanted[4:8], wanted[8:])]
    kernel = by_the_kernel(path, chunks)
    words = [
        word for i, chunk in enumerate(chunks)
        for word in ('-p', f'p:e{i} {path}:look ' + ' '.join(f'v{k}={definition}'
                                                             for k, definition in enumerate(chunk)))
    ]
    record('--backend', 'inproc', *words, '--', path).ok()
    mine = {}
    for event in events():
        for k, definition in enumerate(chunks[int(event.name[1:])]):
            n = dict(wanted)[definition]
            found = [event.fields[f'v{k}_{i}'] for i in range(n)] or [event.fields[f'v{k}']]
            mine.setdefault(definition, []).append(found)
    for definition, n in wanted:
        theirs = [re.findall(r'"[^"]*"|[^,{}]+', text) for text in kernel[definition]]
        check_equal(len(theirs), 4, f'hits that the kernel has recorded for {definition}')
        if 'string' not in definition:
            kind = definition.partition('[')[0].replace('/', ':u')
            theirs, mine[definition] = ([[number(text, kind) for text in row] for row in rows]
                                        for rows in (theirs, mine[definition]))
        check_equal(mine[definition], theirs, f'values of {definition}')


# ---- which thread runs a probe ----------------------------------------------------------------------------

THREADS = r'''
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long called(long tid, long pid) { return tid ^ pid; }
static void *work(void *unused) { for (int i = 0; i < 100; i++) called(gettid(), getpid()); return unused; }
int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
	for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
	if (!fork()) { work(0); _exit(0); }
	wait(0);
	work(0);
}
'''


@timeout(120)
def test_threads_processes_and_cpus_are_known_to_a_probe(tmp):
    (tmp / 'threads.c').write_text(THREADS)
    for flags in ((), ('-static', )):
        run(program('gcc'), *flags, '-O1', '-pthread', '-o', 'threads', 'threads.c', seconds=60).ok()
        for more in ((), ('--no-rseq', )):
            record('--backend', 'inproc', '--follow', *more, '-p',
                   'p:all ./threads:called real=arg0 its=arg1 t=tid p=pid c=cpu', '-p',
                   'p:first ./threads:called /tid == pid/', '-p',
                   'p:wrong ./threads:called /tid != arg0 || pid != arg1 || cpu > 4096/', '-p',
                   'p:mine ./threads:called /tid == (int)arg0/ cpu', '--', './threads')
            found = {'all': 0}
            for event in events():
                found[event.name] = found.get(event.name, 0) + 1
                if event.name == 'all':
                    check_equal((event['t'], event['p']), (event['real'], event['its']),
                                f'thread and process with {flags} {more}')
                    check(event['c'] < os.cpu_count(), 'a CPU of this machine', event.line)
            check_equal(found, {'all': 600, 'first': 200, 'mine': 600}, f'events with {flags} {more}')


@timeout(120)
def test_pid_is_the_processs_own_number_in_a_container(tmp):
    need_root()
    (tmp /
     'threads.c').write_text(THREADS +
                             '__attribute__((constructor)) static void early(void) { called(gettid(), getpid()); }\n')
    for flags in ((), ('-static', )):
        run(program('gcc'), *flags, '-O1', '-pthread', '-o', 'threads', 'threads.c', seconds=60).ok()
        record('--backend', 'inproc', '--follow', '-p', 'p:all ./threads:called its=arg1 p=pid', '--', 'unshare', '-pf',
               '--mount-proc', './threads').ok()
        ids = [(event['p'], event['its']) for event in events()]
        check_equal(len(ids), 601, f'hits with {flags}')
        check_equal([pair for pair in ids if pair[0] != pair[1]], [],
                    f'ids that are not those of getpid() with {flags}')


NAMES = r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
__attribute__((noipa)) long called(const char *name, long from) { return from + name[0]; }
static void *work(void *number)
{
	char name[16];

	for (long i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), i % 2 ? "worker-%ld" : "a-long-name-%03ld", (long)number * 100 + i);
		prctl(PR_SET_NAME, name);
		called(name, now());
	}
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];

	for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
	if (!fork()) { work((void *)4); _exit(0); }
	wait(0);
	work((void *)5);
	if (argc > 1) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		called("none", now());
	}
}
'''


@timeout(120)
def test_names_of_threads_and_times_are_those_at_the_hit(tmp):
    """Of threads that change their names before each hit."""
    (tmp / 'names.c').write_text(NAMES)
    for flags in ((), ('-static', )):
        run(program('gcc'), *flags, '-O1', '-pthread', '-o', 'names', 'names.c', seconds=60).ok()
        for more in ((), ('--no-rseq', )):
            record('--backend', 'inproc', '--follow', *more, '-p',
                   'p:all ./names:called comm name=str(arg0) from=arg1 nsecs', '-p',
                   'p:one ./names:called /comm == "worker-307"/ comm', '-p',
                   'p:long ./names:called /"a-long-name-102" == comm || comm == "a-long-name-1020"/ str(arg0)', '-p',
                   'p:late ./names:called /nsecs < arg1 || nsecs - arg1 > 60s || comm == ""/', '--count',
                   './names:called by (comm)', '--', './names')
            found = {'all': 0}
            for event in events():
                found[event.name] = found.get(event.name, 0) + 1
                if event.name == 'all':
                    check_equal(event.fields['comm'], event.fields['name'], f'the name with {flags} {more}')
                    check(event['from'] <= event['nsecs'] <= event['from'] + 60 * 10**9, 'the time', event.line)
            found = {name: n for name, n in found.items() if not name.startswith('count:')}
            check_equal(found, {'all': 600, 'one': 1, 'long': 1}, f'events with {flags} {more}')
            table = report_json()['aggregations'][0]
            check_equal((len(table['rows']), table['hits'], table['faults']), (600, 600, 0), 'a row for each name')


def test_names_and_times_are_faults_where_a_process_may_make_no_call(tmp):
    (tmp / 'names.c').write_text(NAMES)
    run(program('gcc'), '-O1', '-pthread', '-o', 'names', 'names.c', seconds=60).ok()
    record('--backend', 'inproc', '-p', './names:called comm nsecs', '-p', 'p:filtered ./names:called /comm != ""/',
           '--', './names', 'limited')
    made = [event for event in events() if event.name == 'names:called']
    check_equal(len(made), 601, 'hits')
    check('(fault)' not in made[599].line, 'before', made[599].line)
    lines = kymo('report', '--events').ok().out.splitlines()
    check_matches(lines[-1], r'names:called comm=\(fault\) nsecs=\(fault\)$', 'after no_new_privs')
    check_equal(sum('filtered' in line for line in lines), 600, 'the filter lets nothing through')


NAMED_PID = r'''
#include <unistd.h>
int table[4];
__attribute__((noipa)) int do_kill(int pid)
{
	table[0] = pid;
	__asm__ volatile("xor %%edi,%%edi; xor %%esi,%%esi" ::: "rdi", "rsi", "memory");
	table[1] = table[0] + 1;
	return table[1];
}
int main(void) { return do_kill(4242) != 4243; }
'''


def test_a_variable_that_is_not_available_is_no_word_of_bpftrace(tmp):
    (tmp / 'named.c').write_text(NAMED_PID)
    run(program('gcc'), '-g', '-O2', '-o', 'named', 'named.c', seconds=60).ok()
    record('--backend', 'inproc', '-p', './named:do_kill pid', '--', './named').ok()
    check_equal([event['pid'] for event in events()], [4242], 'the parameter')
    for words in (('-r', './named:do_kill pid'), ('-r', './named:do_kill /pid == 4242/')):
        record(*words, '--', './named').refused("'pid' is gone at the return", status=2)
    record('-r', './named:main pid', '--', './named').ok()
    check(all(event['pid'] > 0 for event in events()), 'the process, where no variable has that name')


def test_texts_are_told_from_numbers(tmp):
    for spec, sentence in (
        ('libc:malloc comm:string', "column 18: 'comm' is text; leave the type out"),
        ('libc:malloc /comm > 5/', "column 14: a text is recorded, or compared with another: str(arg0) == \"text\""),
        ('libc:malloc v=\\"text', "column 21: expected '\"' at the end of the text, as in \\\"text\""),
        ('libc:malloc v=\\"text":u8', "column 23: '\\\"text\"' is text; leave the type out, or write string"),
        ('libc:malloc $comm:u8', "column 19: '$comm' is text; leave the type out, or write string"),
        ('libc:malloc +0($comm):string', "column 16: '$comm' is text, and no address")):
        record('-p', spec, '--', 'true').wrong_words(sentence)


@timeout(120)
def test_what_the_kernel_refuses_is_refused_and_what_kymo_has_not_is_told(tmp):
    """`is_taken`: by tracefs."""
    need_root()
    (tmp / 'p.c').write_text(PROGRAM)
    run(program('gcc'), '-O1', '-no-pie', '-o', 'p', 'p.c', seconds=60).ok()
    root, path = kernelcount.tracefs(), str(tmp / 'p')
    offset = kernelcount.function_offset(path, 'look')
    for words, is_taken, sentence in (('v=%di:symbol', False, 'symbol is for addresses in the kernel'),
                                      ('v=@jiffies:u32', False, "symbols after '@' are those of the kernel itself"),
                                      ('v=+0(%si):u8[0]', False, "no array 'u8[0]'"),
                                      ('v=%dj', False, "no register '%dj'"), ('v=$comm:u8', False, "'$comm' is text"),
                                      ('v=@+data:u32', False, "expected an offset in the file after '@+'"),
                                      ('v=$stack256', True, 'words of the stack are numbered $stack0 to $stack255')):
        event = f'kymo_test_{os.getpid()}_901/e'
        try:
            kernelcount.append(root / 'dynamic_events', f'p:{event} {path}:{offset:#x} {words}\n')
            kernelcount.append(root / 'dynamic_events', f'-:{event}\n')
            check(is_taken, f'the kernel refuses {words}')
        except OSError:
            check(not is_taken, f'the kernel takes {words}')
        result = record('-p', f'{path}:look {words}', '--', path)
        check_equal(result.status, 2, f'status of {words}')
        check(sentence in result.err.splitlines()[0], f'sentence about {words}', result.err)
