#include "textflag.h"

// func exchange(trap1, fd1, trap2, fd2 uintptr, p *byte, size, calls int) (done, last int)
TEXT ·exchange(SB), NOSPLIT, $0-72
	MOVQ trap1+0(FP), R8
	MOVQ fd1+8(FP), R9
	MOVQ trap2+16(FP), R10
	MOVQ fd2+24(FP), R12
	MOVQ p+32(FP), SI
	MOVQ size+40(FP), DX
	MOVQ calls+48(FP), R13
	XORL BX, BX
	MOVQ DX, AX
next:
	CMPQ BX, R13
	JGE  end
	MOVQ R8, AX
	MOVQ R9, DI
	SYSCALL // keeps all but AX, CX and R11
	CMPQ AX, DX
	JNE  end
	INCQ BX
	XCHGQ R8, R10
	XCHGQ R9, R12
	JMP  next
end:
	MOVQ BX, done+56(FP)
	MOVQ AX, last+64(FP)
	RET
