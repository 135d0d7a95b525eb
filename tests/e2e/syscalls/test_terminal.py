"""A command under `kymo syscalls` as a job of an interactive shell: stopped by Ctrl-Z, and going on by fg."""
import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time

from kymotest import KYMO, at_end, check, check_equal, program


class Shell:
    """An interactive bash. Nothing that was typed is thrown away when a signal character comes (NOFLSH): the kernel
    does that some time after the signal."""
    def __init__(self):
        self.master, slave = pty.openpty()
        modes = termios.tcgetattr(slave)
        modes[3] |= termios.NOFLSH
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        self.bash = subprocess.Popen([program('bash'), '--norc', '--noprofile', '--noediting', '-i'], stdin=slave,
                                     stdout=slave, stderr=slave, start_new_session=True,
                                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                     env={**os.environ, 'PS1': 'PROMPT> '})
        os.close(slave)
        self.text = ''
        at_end(self.end)
        self.until('PROMPT> ')

    def end(self):
        if self.bash.poll() is None:
            self.bash.kill()
            self.bash.wait()
        os.close(self.master)  # its jobs get SIGHUP

    def until(self, pattern):
        """What comes up to there, and what was not looked at before."""
        deadline = time.monotonic() + 60
        while not (match := re.search(pattern, self.text)):
            check(time.monotonic() < deadline, f'the terminal shows /{pattern}/', self.text)
            if select.select([self.master], [], [], 0.2)[0]:
                self.text += os.read(self.master, 65536).decode(errors='replace').replace('\r\n', '\n')
        before, self.text = self.text[:match.end()], self.text[match.end():]
        return before

    def type(self, text):
        os.write(self.master, text.encode())


def session(tmp, *job):
    """A job that is stopped and goes on twice; all that it shows. It waits for words in pipes: a process that waits for
    the terminal may still take what is typed for the shell."""
    shell = Shell()
    shell.type(' '.join(job) + '\n')
    shell.until('\nready\n')
    shown = []
    for word in ('one', 'two'):
        shell.type('\x1a')
        shell.until(r'\[1\]\+ +Stopped')
        shell.until('PROMPT> ')
        shell.type('fg\n')
        shell.until(r'fg\n.*echo ready.*\n')
        with open(tmp / word, 'w') as pipe:  # waits for the job
            pipe.write(word + '\n')
        shown.append(shell.until('got .*\n'))
    shown.append(shell.until('PROMPT> '))
    shell.type('echo status $?\n')
    shown.append(shell.until(r'status \d+\n'))
    return shown


def test_a_job_is_stopped_and_goes_on_as_it_does_untraced(tmp):
    os.mkfifo(tmp / 'one')
    os.mkfifo(tmp / 'two')
    job = f"'echo ready; for pipe in one two; do read word < {tmp}/$pipe; echo got $word; done; exit 7'"
    bare = session(tmp, program('sh'), '-c', job)
    check_equal(bare, ['got one\n', 'got two\n', 'PROMPT> ', 'echo status $?\nstatus 7\n'])
    check_equal(session(tmp, KYMO, 'syscalls', '-f', '-o', str(tmp / 'out'), program('sh'), '-c', job), bare)
    ends = [
        line.split(' ', 1)[1].strip() for line in (tmp / 'out').read_text().splitlines()
        if '---' in line or '+++' in line
    ]
    check_equal(ends[-1], '+++ exited with 7 +++')
    check(sum('SIGCONT' in line for line in ends) == 2, str(ends))  # SIGTSTP is forgotten where kymo has stopped first


def test_an_interrupt_from_the_terminal_is_the_commands_and_counts_are_shown(tmp):
    shell = Shell()
    shell.type(
        f'{KYMO} syscalls -c -o {tmp}/counts sh -c \'trap "exit 9" INT; echo ready; while :; do sleep 0.05; done\'\n')
    shell.until('\nready\n')
    shell.type('\x03')
    shell.until('PROMPT> ')
    shell.type('echo status $?\n')
    check_equal(shell.until(r'status \d+\n'), 'echo status $?\nstatus 9\n')
    check('total' in (tmp / 'counts').read_text().splitlines()[-1], (tmp / 'counts').read_text())
