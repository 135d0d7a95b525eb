/* Calls that kymo shows otherwise than strace does; test_strace.py lists them. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	syscall(SYS_connect, -1, (char[20]){ 17, 0, 0, 3, 1, 0, 0, 0, 1, 0, 0, 6, 1, 2, 3, 4, 5, 6 }, 20);
	syscall(SYS_kcmp, 1, 2, 0, 3, 4);
	syscall(SYS_ptrace, 99, 0, 0, 0);
	syscall(SYS_ioctl, -1, 0x8913, 0);
	syscall(SYS_prctl, 47, 1, 3, 0, 0);
	return 0;
}
