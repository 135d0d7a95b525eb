"""entry(EXPR) at a return: what the function was called with, in the record of its return."""
import re
import signal

import processes
from kymotest import (check, check_equal, check_matches, events, eventually, kymo, program, record, report_json, run,
                      start, start_record)

SYS_READ = 0

CALLS = r"""
#include <stdio.h>
#include <stdlib.h>
struct conn { int fd; double rate; };
enum mode { READ, WRITE };
__attribute__((noipa)) int work(struct conn *c, const char *name, int n, enum mode mode)
{
	int r = c->fd + n;

	c->fd = 99;
	return n > 0 ? r + work(c, name + 1, n - 1, !mode) : r;
}
int main(void)
{
	struct conn c = { 3, 1.5 };
	char line[16];

	work(&c, "hello", 2, WRITE);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%d\n", work(&c, "more", 0, READ));
		fflush(stdout);
	}
	return 0;
}
"""


def build(tmp, *options):
    (tmp / 'calls.c').write_text(CALLS)
    run('gcc', '-g', '-O1', '-o', 'calls', 'calls.c', *options).ok()


def values(event, *names):
    return tuple(event.fields[name].strip('"') for name in names)


def test_values_of_the_entry_are_in_the_record_of_the_return(tmp):
    """Of calls within calls of the same function, each has its own; what has changed since is as it was."""
    build(tmp)
    names = 'n', 'fd', 'name', 'rate', 'retval'
    for words in (), ('--no-rseq', ), ('--keep', '8M'):
        record(*words, '-r', './calls:work entry(n) entry(c->fd) entry(str(name)) entry(c->rate) retval', '--',
               './calls').ok()
        check_equal([values(event, *names) for event in events()],
                    [('0', '99', 'llo', '1.5', '99'), ('1', '99', 'ello', '1.5', '199'),
                     ('2', '3', 'hello', '1.5', '204')], words)
        check_equal({event['faults'] for event in events()}, {0}, words)
    record('-r', './calls:work mode=entry(mode) last=entry(n + 1) duration entry(str(name, n))', '--', './calls').ok()
    check_equal([(event.named('mode'), event['last'], values(event, 'name')) for event in events()],
                [('WRITE', 1, ('', )), ('READ', 2, ('e', )), ('WRITE', 3, ('he', ))])
    check(all(0 < event['duration'] < 10**9 for event in events()), 'durations')
    lines = kymo('report', '--events').ok().out.splitlines()
    check_matches(lines[2], r' calls:work%return mode=WRITE last=3 duration=\d+ name="he"$')


def test_a_filter_of_durations_goes_with_it(tmp):
    build(tmp)
    record('-r', './calls:work /duration > 1s/ entry(n)', '--', './calls').ok()
    check_equal(events(), [])
    record('-r', './calls:work /duration > 1ns && retval > 150/ entry(n)', '--', './calls').ok()
    check_equal([event['n'] for event in events()], [1, 2])


def test_by_words_of_the_machine_on_programs_of_debian(tmp):
    """Without debug information: arguments by number."""
    (tmp / 'there').write_text('x')
    record('-r', 'libc:open64 entry(str(arg0)) retval', '--', '/bin/cat', tmp / 'there', '/nonexistent').ended(1)
    opened = [values(event, 'arg0', 'retval') for event in events()]
    check(('/nonexistent', '-1') in opened, 'what is missing', opened)
    check(re.fullmatch(r'\d+', dict(opened)[str(tmp / 'there')]), 'what is there', opened)
    record('-r', 'libc:malloc size=entry(arg0) retval', '-p', 'libc:malloc size=arg0', '--', program('git'),
           '--version').ok()
    sizes = {'libc:malloc': [], 'libc:malloc%return': []}
    for event in events():
        sizes[event.name].append(event['size'])
    check(len(sizes['libc:malloc']) > 20, 'it allocates')
    check_equal(sizes['libc:malloc%return'], sizes['libc:malloc'], 'sizes')


def test_what_began_before_the_recording_has_faults(tmp):
    process = start(program('python3'), '-c', 'import os\nprint("ready", flush=True)\nwhile os.read(0, 1): pass')
    process.wait_for('^ready$')
    eventually(lambda: processes.call(process.pid) == SYS_READ, 'it waits')
    recorder = start_record(process.pid, '-r', 'libc:read fd=entry(arg0) retval')
    process.send('xy')
    process.end().ok()
    recorder.end(signal.SIGINT)
    found = [(event['retval'], event['faults'] & 1, event['fd']) for event in events()]
    check_equal(found, [(1, 1, 0), (1, 0, 0), (0, 0, 0)], 'results, faults, descriptors')
    check_matches(kymo('report', '--events').ok().out, r'%return fd=\(unknown\) retval=1$')


def test_children_have_their_own(tmp):
    build(tmp)
    (tmp / 'script').write_text('./calls </dev/null\n./calls </dev/null &\nwait\n')
    record('-r', './calls:work entry(n)', '--', program('bash'), tmp / 'script').ok()
    check_equal(sorted(event['n'] for event in events()), [0, 0, 1, 1, 2, 2])
    check_equal(report_json()['calls'], [], 'no entries are in the trace')


def test_what_is_refused(tmp):
    build(tmp)
    for words, sentence in (
        ('entry(*c)', 'column 14: entry() is a number or a text, and this is memory as a whole'),
        ('entry(nn)', "column 20: there is no variable 'nn' here"),
        ('n', "column 14: 'n' is gone at the return; entry(n) is what the entry had"),
        ('arg0', 'column 14: arguments are gone at the return; entry(arg0) is what the entry had'),
        ('entry(n):x32', 'column 23: write the type within the brackets: entry((u32)arg0)'),
        ('entry(n)+1', 'column 14: entry() stands alone; write what is computed within its brackets'),
        ('entry(', 'column 14: entry() stands alone'),
        ('entry(n, n)', 'column 21: entry() is one value; write another one beside it: entry(arg0) entry(arg1)'),
        ("entry(n == ',' ? (n, 1) : 2)", 'column 33: expected'),
        ('entry(duration)', 'duration'),
        (' '.join(f'a{i}=entry(n)' for i in range(8)), 'has room for 7 arguments: leave one out'),
        (' '.join(f'a{i}=retval' for i in range(7)) + ' entry(n)', 'has room for 7 arguments: leave one out'),
        ('(entry(n)+1)', 'column 15: entry() stands alone among the values of a return'),
        ('/entry(n) > 1/ retval', 'column 15: entry() stands alone among the values of a return'),
    ):
        record('-r', f'./calls:work {words}', '--', './calls').refused(re.escape(sentence), 2)
    record('-p', './calls:work entry(n)', '--', './calls').refused(r'column 14: entry\(\) is for returns', 2)
    record('-r', './calls:work entry(n)', '--backend', 'kernel', '--', './calls').refused(r'entry\(\), are of probes in the process itself: leave --backend out', 2)
    record('-r', './calls:work entry(n)', '--overwrite', '--', './calls').refused('--keep', 2)
