import { expect, test } from 'vitest';
import { nominalKhz } from './tsc-frequency.ts';

test("the nominal frequency is that of the processor's name, not the current one", () => {
  const cpuinfo = 'processor : 0\ncpu MHz\t\t: 1197.250\n';
  expect(nominalKhz('Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz', cpuinfo)).toBe(2_400_000);
  expect(nominalKhz('AMD EPYC 7B13', cpuinfo)).toBe(1_197_250);
  expect(nominalKhz('', '')).toBe(2_000_000);
});
