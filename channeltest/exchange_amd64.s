#include "textflag.h"

// func exchange(trap1, fd1, trap2, fd2 uintptr, p *byte, size, calls int, stamps *int64) (done, last int)
TEXT ·exchange(SB), NOSPLIT, $0-80
	MOVQ trap1+0(FP), R8
	MOVQ fd1+8(FP), R9
	MOVQ trap2+16(FP), R10
	MOVQ fd2+24(FP), R12
	MOVQ p+32(FP), SI
	MOVQ size+40(FP), DX
	MOVQ calls+48(FP), R13
	XORL BX, BX
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
	TESTQ $1, BX
	JNE  next
	MOVQ stamps+56(FP), CX
	TESTQ CX, CX
	JEQ  next
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, -8(CX)(BX*4) // stamps[BX/2-1]
	MOVQ size+40(FP), DX
	JMP  next
end:
	MOVQ BX, done+64(FP)
	MOVQ AX, last+72(FP)
	RET
