"""Go programs, built in a test's own directory and from nothing but what is installed."""
import os
import re
import shutil

from kymotest import run, skip


def find():
    return shutil.which('go', path='/usr/local/go/bin:/usr/bin:/bin') or skip('no go here')


def environment(tmp, **more):
    return {
        'HOME': str(tmp), 'GOCACHE': str(tmp / 'cache'), 'GOPATH': str(tmp / 'gopath'), 'GO111MODULE': 'off', 'GOFLAGS':
        '', 'CGO_ENABLED': '0', 'PATH': os.environ['PATH'], **more
    }


def build(tmp, output, source, *flags, **environ):
    """Compile the file to `output` in `tmp`. Packages that it imports are below gopath/src there."""
    run(find(), 'build', *flags, '-o', output, source, env=environment(tmp, **environ), cwd=tmp, seconds=240).ok()
    return tmp / output


# cmp 16(%r14), %rsp, or lea and cmp of %r12 where the frame is large; then jbe.
_CHECK = re.compile(rb'(\x49\x3b\x66\x10|\x4c\x8d(\x64\x24.|\xa4\x24.{4})\x4d\x3b\x66\x10)(\x76.|\x0f\x86.{4})',
                    re.DOTALL)


def size_of_check(path, offset):
    """How long the check is with which the function at this offset in the file begins: whether its stack has to grow.
    It runs once more in that case, and if the goroutine shall give way to others. So the entries of a function are not
    its calls."""
    with open(path, 'rb') as file:
        file.seek(offset)
        match = _CHECK.match(file.read(32))
    return len(match[0]) if match else 0
