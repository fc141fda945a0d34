/**
 * The most that one user of something scarce may hold while so much of it is free: a quarter. So a few users that take as much
 * as they can leave a good part to others. This is the rule of dynamic thresholds, by which switches share the memory for
 * packets (A. K. Choudhury and E. L. Hahne, 1998). Many users that give nothing back can still take all in turn, so each user
 * also needs a little that no other can take.
 */
export function fairShare(free: number): number {
  return free / 4;
}
