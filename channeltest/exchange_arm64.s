#include "textflag.h"

// func exchange(trap1, fd1, trap2, fd2 uintptr, p *byte, size, calls int, stamps *int64) (done, last int)
TEXT ·exchange(SB), NOSPLIT, $0-80
	MOVD trap1+0(FP), R8
	MOVD fd1+8(FP), R9
	MOVD trap2+16(FP), R10
	MOVD fd2+24(FP), R11
	MOVD p+32(FP), R12
	MOVD size+40(FP), R13
	MOVD calls+48(FP), R14
	MOVD stamps+56(FP), R22
	MOVD $0, R15
next:
	CMP  R14, R15
	BGE  end
	MOVD R9, R0
	MOVD R12, R1
	MOVD R13, R2
	SVC // keeps all but R0
	CMP  R13, R0
	BNE  end
	ADD  $1, R15
	MOVD R8, R19
	MOVD R10, R8
	MOVD R19, R10
	MOVD R9, R19
	MOVD R11, R9
	MOVD R19, R11
	TBNZ $0, R15, next
	CBZ  R22, next
	MRS  CNTVCT_EL0, R20
	ADD  R15<<2, R22, R21
	MOVD R20, -8(R21) // stamps[R15/2-1]
	B    next
end:
	MOVD R15, done+64(FP)
	MOVD R0, last+72(FP)
	RET
