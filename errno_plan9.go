package ipcbench

// Plan 9 has no errno: the sentinels match nothing but themselves.
var errWouldBlock, errMessageTooLong error
