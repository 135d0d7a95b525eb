/* ioctl: requests by name, and what those of terminals and descriptors carry. */
#include "syscall/ioctl.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/sockios.h>
#include <linux/termios.h>
#include <string.h>

#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"

/* Two families have given three numbers of the terminals' a second name. */
NAMES(requests, "", NAME(TCGETS), { "SNDCTL_TMR_START or TCSETS", TCSETS }, { "SNDCTL_TMR_STOP or TCSETSW", TCSETSW },
      { "SNDCTL_TMR_CONTINUE or TCSETSF", TCSETSF }, NAME(TCGETA), NAME(TCSETA), NAME(TCSETAW), NAME(TCSETAF),
      NAME(TCSBRK), NAME(TCXONC), NAME(TCFLSH), NAME(TIOCEXCL), NAME(TIOCNXCL), NAME(TIOCSCTTY), NAME(TIOCGPGRP),
      NAME(TIOCSPGRP), NAME(TIOCOUTQ), NAME(TIOCSTI), NAME(TIOCGWINSZ), NAME(TIOCSWINSZ), NAME(TIOCMGET),
      NAME(TIOCMBIS), NAME(TIOCMBIC), NAME(TIOCMSET), NAME(TIOCGSOFTCAR), NAME(TIOCSSOFTCAR), NAME(FIONREAD),
      NAME(TIOCLINUX), NAME(TIOCCONS), NAME(TIOCGSERIAL), NAME(TIOCSSERIAL), NAME(TIOCPKT), NAME(FIONBIO),
      NAME(TIOCNOTTY), NAME(TIOCSETD), NAME(TIOCGETD), NAME(TCSBRKP), NAME(TIOCSBRK), NAME(TIOCCBRK), NAME(TIOCGSID),
      NAME(TCGETS2), NAME(TCSETS2), NAME(TCSETSW2), NAME(TCSETSF2), NAME(TIOCGPTN), NAME(TIOCSPTLCK), NAME(TIOCGDEV),
      NAME(TIOCVHANGUP), NAME(TIOCGPKT), NAME(TIOCGPTLCK), NAME(TIOCGEXCL), NAME(TIOCGPTPEER), NAME(FIONCLEX),
      NAME(FIOCLEX), NAME(FIOASYNC), NAME(FIOQSIZE), NAME(BLKROSET), NAME(BLKROGET), NAME(BLKRRPART), NAME(BLKGETSIZE),
      NAME(BLKFLSBUF), NAME(BLKRASET), NAME(BLKRAGET), NAME(BLKSSZGET), NAME(BLKBSZGET), NAME(BLKBSZSET),
      NAME(BLKGETSIZE64), NAME(BLKDISCARD), NAME(BLKIOMIN), NAME(BLKIOOPT), NAME(BLKALIGNOFF), NAME(BLKPBSZGET),
      NAME(BLKDISCARDZEROES), NAME(BLKSECDISCARD), NAME(BLKROTATIONAL), NAME(BLKZEROOUT), NAME(FIFREEZE), NAME(FITHAW),
      NAME(FITRIM), { "BTRFS_IOC_CLONE or FICLONE", FICLONE },
      { "BTRFS_IOC_CLONE_RANGE or FICLONERANGE", FICLONERANGE },
      { "BTRFS_IOC_FILE_EXTENT_SAME or FIDEDUPERANGE", FIDEDUPERANGE }, NAME(FS_IOC_GETFLAGS), NAME(FS_IOC_SETFLAGS),
      NAME(FS_IOC_FSGETXATTR), NAME(FS_IOC_FSSETXATTR), { "FS_IOC_FIEMAP", 0xc020660b }, NAME(SIOCGIFNAME),
      NAME(SIOCGIFCONF), NAME(SIOCGIFFLAGS), NAME(SIOCSIFFLAGS), NAME(SIOCGIFADDR), NAME(SIOCGIFDSTADDR),
      NAME(SIOCGIFBRDADDR), NAME(SIOCGIFNETMASK), NAME(SIOCGIFMETRIC), NAME(SIOCGIFMTU), NAME(SIOCSIFMTU),
      NAME(SIOCGIFHWADDR), NAME(SIOCGIFINDEX), NAME(SIOCGIFTXQLEN), NAME(SIOCETHTOOL), NAME(SIOCATMARK));

NAMES(iflags, "I???", NAME(IGNBRK), NAME(BRKINT), NAME(IGNPAR), NAME(PARMRK), NAME(INPCK), NAME(ISTRIP), NAME(INLCR),
      NAME(IGNCR), NAME(ICRNL), NAME(IUCLC), NAME(IXON), NAME(IXANY), NAME(IXOFF), NAME(IMAXBEL), NAME(IUTF8));
NAMES(oflags, "O???", NAME(OPOST), NAME(OLCUC), NAME(ONLCR), NAME(OCRNL), NAME(ONOCR), NAME(ONLRET), NAME(OFILL),
      NAME(OFDEL));
NAMES(newlines, "?", NAME(NL0), NAME(NL1));
NAMES(returns, "?", NAME(CR0), NAME(CR1), NAME(CR2), NAME(CR3));
NAMES(tabs, "?", NAME(TAB0), NAME(TAB1), NAME(TAB2), NAME(TAB3));
NAMES(backspaces, "?", NAME(BS0), NAME(BS1));
NAMES(verticals, "?", NAME(VT0), NAME(VT1));
NAMES(formfeeds, "?", NAME(FF0), NAME(FF1));
NAMES(bauds, "B???", NAME(B0), NAME(B50), NAME(B75), NAME(B110), NAME(B134), NAME(B150), NAME(B200), NAME(B300),
      NAME(B600), NAME(B1200), NAME(B1800), NAME(B2400), NAME(B4800), NAME(B9600), NAME(B19200), NAME(B38400),
      NAME(BOTHER), NAME(B57600), NAME(B115200), NAME(B230400), NAME(B460800), NAME(B500000), NAME(B576000),
      NAME(B921600), NAME(B1000000), NAME(B1152000), NAME(B1500000), NAME(B2000000), NAME(B2500000), NAME(B3000000),
      NAME(B3500000), NAME(B4000000));
NAMES(sizes, "CS???", NAME(CS5), NAME(CS6), NAME(CS7), NAME(CS8));
NAMES(cflags, "C???", NAME(CSTOPB), NAME(CREAD), NAME(PARENB), NAME(PARODD), NAME(HUPCL), NAME(CLOCAL), NAME(CMSPAR),
      NAME(CRTSCTS));
NAMES(lflags, "L???", NAME(ISIG), NAME(ICANON), NAME(XCASE), NAME(ECHO), NAME(ECHOE), NAME(ECHOK), NAME(ECHONL),
      NAME(NOFLSH), NAME(TOSTOP), NAME(IEXTEN), NAME(ECHOCTL), NAME(ECHOPRT), NAME(ECHOKE), NAME(FLUSHO), NAME(PENDIN),
      NAME(EXTPROC));
NAMES(flushes, "TC???", NAME(TCIFLUSH), NAME(TCOFLUSH), NAME(TCIOFLUSH));
NAMES(flows, "TC???", NAME(TCOOFF), NAME(TCOON), NAME(TCIOFF), NAME(TCION));

static void put_rest(struct decode *d, const struct names *names, unsigned flags)
{
	if (!flags)
		return;
	puts_(d, "|");
	put_flags(d, names, flags);
}

/* Of c_cc in the kernel's struct termios, which is shorter than the C library's. */
enum { KERNEL_CHARACTERS = 19 };

static void put_characters(struct decode *d, const struct termios *t)
{
	static const char *const names[] = { "VINTR",    "VQUIT",    "VERASE",  "VKILL",  "VEOF",  "VTIME",
					     "VMIN",     "VSWTC",    "VSTART",  "VSTOP",  "VSUSP", "VEOL",
					     "VREPRINT", "VDISCARD", "VWERASE", "VLNEXT", "VEOL2" };

	if (t->c_line)
		put(d, ", c_line=%#x", t->c_line);
	else
		puts_(d, ", c_line=N_TTY");
	puts_(d, ", c_cc=[");
	for (unsigned i = 0; i < KERNEL_CHARACTERS; i++) {
		if (i < kymo_countof(names))
			put(d, "%s[%s]=%#x", i ? ", " : "", names[i], t->c_cc[i]);
		else
			put(d, ", [%u]=%#x", i, t->c_cc[i]);
	}
	puts_(d, "]}");
}

static void put_termios(struct decode *d, uint64_t address)
{
	struct termios t;

	if (!fetch_or_put(d, address, &t, sizeof(t)))
		return;
	puts_(d, "{c_iflag=");
	put_flags(d, &iflags, t.c_iflag);
	puts_(d, ", c_oflag=");
	put(d, "%s|%s|%s|%s|", name_of(&newlines, t.c_oflag & NLDLY), name_of(&returns, t.c_oflag & CRDLY),
	    name_of(&tabs, t.c_oflag & TABDLY), name_of(&backspaces, t.c_oflag & BSDLY));
	put(d, "%s|%s", name_of(&verticals, t.c_oflag & VTDLY), name_of(&formfeeds, t.c_oflag & FFDLY));
	put_rest(d, &oflags, t.c_oflag & ~(unsigned)(NLDLY | CRDLY | TABDLY | BSDLY | VTDLY | FFDLY));
	puts_(d, ", c_cflag=");
	put_name(d, &bauds, t.c_cflag & CBAUD);
	puts_(d, "|");
	put_name(d, &sizes, t.c_cflag & CSIZE);
	put_rest(d, &cflags, t.c_cflag & ~(unsigned)(CBAUD | CSIZE));
	puts_(d, ", c_lflag=");
	put_flags(d, &lflags, t.c_lflag);
	if (d->target->is_whole)
		put_characters(d, &t);
	else
		puts_(d, ", ...}");
}

static void put_window(struct decode *d, uint64_t address)
{
	uint16_t size[4];

	if (fetch_or_put(d, address, size, sizeof(size)))
		put(d, "{ws_row=%u, ws_col=%u, ws_xpixel=%u, ws_ypixel=%u}", size[0], size[1], size[2], size[3]);
}

static void put_pointed_number(struct decode *d, uint64_t address)
{
	int value;

	if (fetch_or_put(d, address, &value, sizeof(value)))
		put(d, "[%d]", value);
}

PRINT(print_request)
{
	static const char *const directions[] = { "_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE" };
	const unsigned request = (unsigned)ARG;
	const char *name = name_of(&requests, request);

	if (name)
		puts_(d, name);
	else
		put(d, "_IOC(%s, %#x, %#x, %#x)", directions[_IOC_DIR(request)], _IOC_TYPE(request), _IOC_NR(request),
		    _IOC_SIZE(request));
	switch (request) {
	case FIOCLEX:
	case FIONCLEX:
	case TIOCNOTTY:
	case TIOCEXCL:
	case TIOCNXCL:
	case TIOCSBRK:
	case TIOCCBRK:
	case TIOCVHANGUP:
	case TIOCCONS:
		d->call->is_stopped = true;
		break;
	default:
		puts_(d, ", ");
	}
}

/* What is given; what comes back is left to the exit. */
PRINT(print_given)
{
	d->call->is_stopped = true;
	switch ((unsigned)d->call->args[1]) {
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
	case TCSETS2:
	case TCSETSW2:
	case TCSETSF2:
		put_termios(d, ARG);
		break;
	case TIOCSWINSZ:
		put_window(d, ARG);
		break;
	case FIONBIO:
	case FIOASYNC:
	case TIOCSPGRP:
	case TIOCSPTLCK:
	case TIOCPKT:
	case TIOCSETD:
		put_pointed_number(d, ARG);
		break;
	case TIOCSTI:
		put_bytes(d, ARG, 1);
		break;
	case TCFLSH:
		put_name(d, &flushes, ARG);
		break;
	case TCXONC:
		put_name(d, &flows, ARG);
		break;
	case TCSBRK:
	case TCSBRKP:
	case TIOCSCTTY:
		put(d, "%d", (int)ARG);
		break;
	case FICLONE:
		put_fd(d, (int)ARG);
		break;
	case TCGETS:
	case TCGETS2:
	case TIOCGWINSZ:
	case FIONREAD:
	case TIOCOUTQ:
	case TIOCGPGRP:
	case TIOCGSID:
	case TIOCGPTN:
	case TIOCGETD:
	case TIOCGEXCL:
	case BLKSSZGET:
	case BLKROGET:
		d->call->is_stopped = false;
		break;
	default:
		put(d, "%#" PRIx64, ARG);
	}
}

PRINT(print_answer)
{
	const uint64_t address = d->call->args[2];

	switch ((unsigned)d->call->args[1]) {
	case TCGETS:
	case TCGETS2:
		put_termios(d, address);
		break;
	case TIOCGWINSZ:
		put_window(d, address);
		break;
	default:
		put_pointed_number(d, address);
	}
}

const struct kind k_ioctl[1] = { { print_request, NULL, 0 } };
const struct kind k_ioctl_in[1] = { { print_given, NULL, OWN_COMMA } };
const struct kind k_ioctl_out[1] = { { print_answer, NULL, AT_EXIT | OWN_COMMA } };
