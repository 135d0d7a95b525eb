"""Labels are locations, and types of other files are known."""
from kymotest import check, check_equal, check_matches, event_counts, kymo, program, record, run
from shown import lines

LABELS = r'''
#include <stdio.h>
static int total;
__attribute__((noipa)) int serve(int n)
{
	int i = 0;
again:
	total += i++;
	__asm__ volatile("" ::: "memory");
	if (i < n)
		goto again;
	if (n == 3)
		goto out;
	total++;
out:
	total += 2;
	__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop" ::: "memory");
	return total;
}
int main(void)
{
	for (int i = 1; i < 5; i++)
		serve(i);
	return 0;
}
'''

APP = r'''
#include <stdlib.h>
enum state { IDLE, BUSY };
struct peer { int port; enum state state; };
struct conn { int fd; struct peer *peer; };
int send_conn(void *handle, int n);
int main(void)
{
	struct peer peer = { 443, BUSY };
	struct conn conn = { 7, &peer };

	return send_conn(&conn, 3) != 3;
}
'''
LIBRARY = 'int send_conn(void *handle, int n) { return n + !handle; }'


def build_labels(tmp):
    (tmp / 'app.c').write_text(LABELS)
    run(program('gcc'), '-g', '-O0', '-no-pie', '-o', 'app', 'app.c', seconds=60).ok()


def test_a_label_is_a_location(tmp):
    build_labels(tmp)
    record('-p', './app:serve:again i n', '-p', './app:serve:out /n > 2/ n', '--', './app').ok()
    check_equal(event_counts(), {'app:serve:again': 10, 'app:serve:out': 2}, 'counts')
    check_equal(lines('app:serve:again')[:3], ['i=0 n=1', 'i=0 n=2', 'i=1 n=2'], 'variables at a label')
    check_equal(lines('app:serve:out'), ['n=3', 'n=4'], 'with a filter')
    check('serve' in kymo('explain', './app', 'serve:out').ok().out, 'it is explained')
    check_matches(kymo('list', '--vars', './app:serve:again').ok().out, r'(?m)\bn\b', 'its variables')


def test_what_is_no_label_is_refused(tmp):
    build_labels(tmp)
    for spec, sentence in (('./app:serve:uot', "serve has no label 'uot'; it has: again, out"),
                           ('./app:main:out', "main has no label 'out'"),
                           ('./app:srve:out', './app has no function srve'),
                           ('./none:serve:out', 'none')):
        result = record('-p', spec, '--', './app')
        check(result.status in (1, 2) and sentence in result.err, f'sentence about {spec}', result.err)
    result = record('-r', './app:serve:out', '--', './app')
    check_equal(result.status, 2, 'status of a return')
    check('a return probe is for a whole function' in result.err, 'sentence about a return', result.err)


def build_library(tmp, *options):
    (tmp / 'conn.c').write_text(LIBRARY)
    (tmp / 'app.c').write_text(APP)
    run(program('gcc'), *options, '-O1', '-shared', '-fPIC', '-o', 'libconn.so', 'conn.c', seconds=60).ok()
    run(program('gcc'), '-g', '-O1', '-o', 'app', 'app.c', './libconn.so', seconds=60).ok()


def test_types_of_another_file_are_known(tmp):
    words = ('./libconn.so:send_conn /((struct conn *)arg0)->peer->port == 443/ ((struct conn *)arg0)->fd '
             '((struct conn *)arg0)->peer->state whole=*((struct conn *)arg0)->peer size=sizeof(struct conn)')
    for options in ((), ('-g', )):  # of the library
        build_library(tmp, *options)
        record('-p', words, '--types', './app', '--', './app').ok()
        check_equal(lines('libconn.so:send_conn'), ['fd=7 state=BUSY whole={port = 443, state = BUSY} size=16'],
                    f'the line, with {options}')
        check('(struct conn *)' not in kymo('explain', '--types', './app', '-e', '((struct conn *)arg0)->fd',
                                            './libconn.so', 'send_conn').ok().err, 'an explanation')


def test_types_that_are_not_there_are_refused(tmp):
    build_library(tmp, '-g')
    result = record('-p', './libconn.so:send_conn ((struct conn *)arg0)->fd', '--', './app')
    check_equal(result.status, 2, 'status without types')
    check("there is no type 'struct conn' in the debug information" in result.err, 'sentence', result.err)
    run('strip', '-o', 'plain.so', './libconn.so').ok()
    result = record('-p', './plain.so:send_conn ((struct conn *)arg0)->fd', '--late', '--', './app')
    check_matches(
        result.err, r"there is no type 'struct conn': \./plain\.so has no debug information; install the debug symbols of "
        r"its package \(PACKAGE-dbgsym of the PACKAGE that 'dpkg -S plain\.so' names, on Debian\)",
        'sentence without debug information')
    result = record('-p', './libconn.so:send_conn ((struct conn *)arg0)->df', '--types', './app', '--', './app')
    check("'struct conn' has no member 'df'; it has: fd, peer" in result.err, 'sentence about a member', result.err)
    run('strip', '-o', 'stripped', './app').ok()
    for name in ('./stripped', './none'):
        result = record('--types', name, '-p', './libconn.so:send_conn ((struct conn *)arg0)->fd', '--', './app')
        check(result.status in (1, 2) and name[2:] in result.err, f'sentence about {name}', result.err)
