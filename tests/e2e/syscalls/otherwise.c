/* Calls that kymo shows otherwise than strace does; test_strace.py lists them. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	syscall(SYS_kcmp, 1, 2, 0, 3, 4);
	syscall(SYS_ptrace, 99, 0, 0, 0);
	syscall(SYS_ioctl, -1, 0x8913, 0);
	return 0;
}
