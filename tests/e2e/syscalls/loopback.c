/* A server and its client, processes of their own. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int listener)
{
	struct sockaddr_in who;
	socklen_t size = sizeof(who);
	char bytes[64];
	int fd = accept(listener, (struct sockaddr *)&who, &size);
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_WAITALL);

	send(fd, bytes, n > 0 ? (size_t)n : 0, MSG_NOSIGNAL);
	_exit(0);
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), one = 1, status;
	socklen_t size = sizeof(address);
	char bytes[64];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 3) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		return 1;
	if (!fork())
		serve(listener);
	if (connect(client, (struct sockaddr *)&address, size))
		return 1;
	send(client, "hello, loopback", 15, 0);
	shutdown(client, SHUT_WR);
	if (recv(client, bytes, sizeof(bytes), MSG_WAITALL) != 15)
		return 1;
	return wait(&status) < 0 || status;
}
