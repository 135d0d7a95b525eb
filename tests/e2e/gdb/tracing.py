"""What the tests of tracepoints share."""
from kymotest import check_matches

SOURCE = r'''
#include <stdio.h>
struct thing { int n; struct thing *next; char name[8]; } second = { 2, 0, "second" }, first = { 1, &second, "first" };
int total, other = 9;
char big[40 << 20], buffer[64] = "a text", *text = buffer, *unused;
__attribute__((noipa)) int work(int i, struct thing *thing)
{
	thing->n = total;
	total += 2 * i;
	return total;
}
__attribute__((noipa)) void leave(void) { total += 1; }
__attribute__((noipa)) void done(void) { total += 1; }
int main(void)
{
	for (int i = 0; i < 10; i++)
		work(i, &first);
	leave();
	done();
	return 0;
}
'''
RUN = ['tstart', 'continue']


def actions(tmp, where, *lines):
    """Words for gdb: a tracepoint, and what it collects."""
    script = tmp / f'actions-{abs(hash((where, lines)))}.gdb'
    script.write_text('\n'.join(['trace ' + where, 'actions', *lines, 'end']) + '\n')
    return [f'source {script}']


def status(client, begins='T'):
    reply = client.ask('qTStatus')
    check_matches(reply, '^' + begins)
    return reply
