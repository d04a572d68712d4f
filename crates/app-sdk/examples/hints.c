/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A video server in small: sends one client two chunks, and tells Trimtab's agent what is good for the connection.
 *
 *     cc -o hints hints.c -ltrimtab && ./hints
 *
 * It prints the port that it listens at. Without an agent it serves all the same.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <trimtab.h>

#define CHUNK_BYTES 250000
#define CHUNKS 2

static int listen_somewhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		perror("listen");
		return -1;
	}
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static int send_chunk(int client)
{
	static char chunk[CHUNK_BYTES];
	size_t sent = 0;

	while (sent < sizeof(chunk)) {
		ssize_t more = send(client, chunk + sent, sizeof(chunk) - sent, MSG_NOSIGNAL);

		if (more < 0)
			return -1;
		sent += more;
	}
	return 0;
}

int main(void)
{
	struct trimtab_live live = TRIMTAB_LIVE_UNKNOWN;
	struct trimtab_hints *hints = trimtab_hints_open(NULL);
	int listener = listen_somewhere();
	int client = accept(listener, NULL, NULL);
	int chunk;

	if (client < 0)
		return 1;
	if (!hints)
		fprintf(stderr, "without hints: %s\n", trimtab_hints_error());
	live.chunk_bytes = CHUNK_BYTES;
	live.buffer_s = 0;
	if (hints && trimtab_hints_describe(hints, client, "vod", &live))
		fprintf(stderr, "without hints: %s\n", trimtab_hints_error());
	for (chunk = 0; chunk < CHUNKS; chunk++) {
		if (send_chunk(client)) {
			perror("send");
			return 1;
		}
		live.buffer_s += 4; /* a real server knows from its player */
		if (hints && trimtab_hints_update(hints, client, &live))
			fprintf(stderr, "hint: %s\n", trimtab_hints_error());
	}
	trimtab_hints_close(hints);
	close(client);
	return 0;
}
