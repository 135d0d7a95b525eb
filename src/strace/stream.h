/* Where lines go. Private to the room. */
#ifndef KYMO_STRACE_STREAM_H
#define KYMO_STRACE_STREAM_H

struct kymo_strace;

/* Lines go to `fd`, which is the stream's from here on, also on an error; STDERR_FILENO stays open. -ENOMEM. */
int strace_stream_open(struct kymo_strace *s, int fd);

/* All is written, as far as the reader takes it. */
void strace_stream_close(struct kymo_strace *s);

#endif
