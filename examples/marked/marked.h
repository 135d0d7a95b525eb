/* The marked module's interface. */
#ifndef MARKED_H
#define MARKED_H

/* Something happens `n` times. */
void marked_work(int n);

#endif
