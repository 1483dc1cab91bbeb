; Draws from the state of Python's random.Random, in its layout: an index, and 624 words. See
; ../scalar_loops/mersenne_twister.py, and M. Matsumoto and T. Nishimura, Mersenne Twister, 1998.

; Makes the next 624 words. Word n depends on the words n, n + 1 and n + 397, modulo 624.
define internal void @mt_refill(ptr %state) nounwind cold noinline {
entry:
  %words = getelementptr i32, ptr %state, i64 1
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %n.next = add i64 %n, 1
  %ends = icmp eq i64 %n.next, 624
  %second = select i1 %ends, i64 0, i64 %n.next
  %ahead = add i64 %n, 397
  %before = sub i64 %n, 227
  %inside = icmp ult i64 %ahead, 624
  %third = select i1 %inside, i64 %ahead, i64 %before
  %at = getelementptr i32, ptr %words, i64 %n
  %at.second = getelementptr i32, ptr %words, i64 %second
  %at.third = getelementptr i32, ptr %words, i64 %third
  %one = load i32, ptr %at
  %two = load i32, ptr %at.second
  %three = load i32, ptr %at.third
  %high = and i32 %one, -2147483648
  %low = and i32 %two, 2147483647
  %mixed = or i32 %high, %low
  %half = lshr i32 %mixed, 1
  %bit = and i32 %mixed, 1
  %mask = sub i32 0, %bit
  %matrix = and i32 %mask, -1727483681
  %twisted = xor i32 %three, %half
  %word = xor i32 %twisted, %matrix
  store i32 %word, ptr %at
  br i1 %ends, label %end, label %next
end:
  store i32 0, ptr %state
  ret void
}

; The next 32 bits.
define internal i32 @mt_bits(ptr %state) nounwind {
entry:
  %used = load i32, ptr %state
  %empty = icmp uge i32 %used, 624
  br i1 %empty, label %refill, label %draw
refill:
  call void @mt_refill(ptr %state)
  br label %draw
draw:
  %at = phi i32 [ %used, %entry ], [ 0, %refill ]
  %place = add i32 %at, 1
  store i32 %place, ptr %state
  %address = getelementptr i32, ptr %state, i32 %place
  %a = load i32, ptr %address
  %a.shifted = lshr i32 %a, 11
  %b = xor i32 %a, %a.shifted
  %b.shifted = shl i32 %b, 7
  %b.masked = and i32 %b.shifted, -1658038656
  %c = xor i32 %b, %b.masked
  %c.shifted = shl i32 %c, 15
  %c.masked = and i32 %c.shifted, -272236544
  %d = xor i32 %c, %c.masked
  %d.shifted = lshr i32 %d, 18
  %e = xor i32 %d, %d.shifted
  ret i32 %e
}

; random(): a float from 0 to 1, of 53 bits.
define internal double @mt_random(ptr %state) nounwind {
  %one = call i32 @mt_bits(ptr %state)
  %two = call i32 @mt_bits(ptr %state)
  %one.wide = zext i32 %one to i64
  %two.wide = zext i32 %two to i64
  %a = lshr i64 %one.wide, 5
  %b = lshr i64 %two.wide, 6
  %high = shl i64 %a, 26
  %whole = or i64 %high, %b
  %float = sitofp i64 %whole to double
  %scaled = fmul double %float, 0x3CA0000000000000
  ret double %scaled
}

; _randbelow(n), of a positive n: as many bits as n has, until they are below n.
define internal i64 @mt_below(ptr %state, i64 %n) nounwind {
entry:
  %unused = call i64 @llvm.ctlz.i64(i64 %n, i1 true)
  %narrow = icmp uge i64 %unused, 32
  %unused.half = sub i64 %unused, 32
  br i1 %narrow, label %half, label %whole
half:
  %bits = call i32 @mt_bits(ptr %state)
  %bits.wide = zext i32 %bits to i64
  %short = lshr i64 %bits.wide, %unused.half
  %short.fits = icmp ult i64 %short, %n
  br i1 %short.fits, label %end, label %half
whole:
  %low = call i32 @mt_bits(ptr %state)
  %high = call i32 @mt_bits(ptr %state)
  %low.wide = zext i32 %low to i64
  %high.wide = zext i32 %high to i64
  %high.kept = lshr i64 %high.wide, %unused
  %high.placed = shl i64 %high.kept, 32
  %long = or i64 %high.placed, %low.wide
  %long.fits = icmp ult i64 %long, %n
  br i1 %long.fits, label %end, label %whole
end:
  %found = phi i64 [ %short, %half ], [ %long, %whole ]
  ret i64 %found
}
