// Package poller waits for many descriptors at once with any of the kernel's
// tools, select(2), poll(2) and epoll(7), behind one [Poller]: the same calls, events and
// errors, so that what remains between them is what each costs and what each
// cannot do. It is no part of Go's own poller and needs nothing of it.
// Linux only; the counterpart on the BSDs, kqueue(2), is not here.
//
// # What a wait costs
//
// select and poll keep nothing between calls. Each call hands over all
// descriptors, and the kernel asks every one: O(descriptors), however few are
// ready. epoll keeps the set, is told by each file when something happens to it, and
// hands out what is ready: O(ready). It pays at the other end, a system call for each Add,
// Modify and Remove, where the others write a word of memory.
//
// A call that sleeps costs select and poll two to three times a call that
// only looks, because the kernel enters the caller in the queue of every
// descriptor and takes it out again. So Wait looks first and sleeps only
// if nothing was ready, in all kinds; a set that is mostly idle pays for that with
// one look more each time it goes to sleep. The benchmarks say what it is
// on the kernel in front of you: BenchmarkWait for one that finds something,
// BenchmarkWakeUp for one that sleeps, BenchmarkGrowth for each descriptor more,
// BenchmarkRegister and BenchmarkModify for the other end.
//
// # What each can do
//
//	                              select       select-wide  poll         epoll
//	a wait is O(…)                descriptors  descriptors  descriptors  ready
//	descriptors                   0 … 1023     any          any          any
//	Edge, OneShot                 no           no           no           yes
//	interest 0: errors only       no           no           yes          yes
//	closed without Remove         EBADF, once  EBADF, once  Failed, once nothing, or stale events
//
// What is not possible is errors.ErrUnsupported, a descriptor of 1024 or more in
// Select [ErrDescriptorRange]. That limit is libc's: its fd_set has 1024 bits,
// and FD_SET on any other writes outside it (select(2), BUGS). The kernel takes bitmaps of any
// length, and SelectWide gives it one that is as long as needed.
//
// # Level and edge
//
// A level-triggered descriptor is reported by each Wait as long as it is ready:
// whoever reads less than there is will be told again. An edge-triggered one
// ([Edge]) is reported when something new happens. "0 events" then means "nothing new", not
// "nothing there": a byte left unread stays unread, for ever if the peer waits for
// an answer to it. So read until EAGAIN, which [Drain] and [DrainFunc] do. What
// Edge saves is waits, one for a burst instead of one for each read.
//
// # The end
//
// What was sent before the end comes first: CanRead, alone or with HangUp, until it has been
// read. Then HangUp: alone on a pipe (POLLHUP), with CanRead on a socket, where
// reading the end does not block (POLLRDHUP, asked for along with Readable). A peer that
// shut down its sending side only is HangUp too; one can still write to it. A pipe whose
// reader has gone is Failed. select cannot tell these
// apart and cannot see some of them: it is asked whether a read or a write would not block,
// and poll about what it found. So on Select and SelectWide a hang-up is seen with
// Readable, or once a write would not block either.
//
// # Closing descriptors
//
// Remove a descriptor before you close it. When that was missed, the number and the
// file part ways, and each tool knows only one of them:
//
//   - select and poll know numbers. Wait tells once that the number is closed, by an
//     [Error] that names it or by Failed, and goes on without it. If the number
//     is taken by another file before that, its readiness is reported in the name of the former.
//   - epoll knows files, under the number they had. If the last descriptor of the file was
//     closed, nothing more is reported. If a duplicate keeps the file open, events
//     of the dead number go on until Remove, or Add of the number's next owner.
//
// In all kinds Remove, and Add of the number's next owner, put the set right:
// after them nothing is reported of the former file, and Wait does not spin on it. epoll
// offers no call for that, as the file cannot be named any more: this package makes a new set of what is left.
// That is rare and O(descriptors). The one case that cannot be seen is on Select and
// Poll: two files without inodes of their own (eventfd, timerfd, epoll) after each other under one
// number are one to them, and Add says EEXIST; Remove helps.
//
// Within a batch that Wait has returned already, handling one event may end another's
// descriptor, and even give its number to a third. [Poller.Current] tells. An event loop
// asks it before it touches the descriptor.
//
// # Files that know no readiness
//
// Reading a regular file or a directory never waits for anybody, and epoll refuses
// both, and /dev/null, with EPERM; select and poll would call them always ready, and a loop would spin. Here Add
// refuses them in every kind, with [ErrNotPollable]. It asks the file, not its
// type: /proc/self/mounts is regular and can be waited for.
//
// Sources: select(2), poll(2), epoll(7), epoll_ctl(2), epoll_wait(2), eventfd(2),
// pipe(7), unix(7); fs/select.c and fs/eventpoll.c of Linux.
package poller
