import { describe, expect, it } from 'vitest';
import { formatTraceparent, parseTraceparent } from './traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('a traceparent', () => {
  it.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-03`, true],
    [`cc-${TRACE}-${SPAN}-01-what-comes-later`, true],
  ])('is read: %s', (header, sampled) => {
    expect(parseTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
  });

  it.each([
    ['absent', undefined],
    ['empty', ''],
    ['sent twice', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
    ['sent twice in one line', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
    ['of an invalid version', `ff-${TRACE}-${SPAN}-01`],
    ['without a trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['without a span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['in upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['with more than version 00 has', `00-${TRACE}-${SPAN}-01-x`],
    ['with a line break', `00-${TRACE}-${SPAN}-01\n`],
    ['too short', `00-${TRACE}-${SPAN}`],
    ['too long', `cc-${TRACE}-${SPAN}-01-${'x'.repeat(200)}`],
  ])('is ignored when it is %s', (_what, header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });

  it('is written as it is read', () => {
    const context = { traceId: TRACE, spanId: SPAN, sampled: true };
    expect(parseTraceparent(formatTraceparent(context))).toEqual(context);
  });
});
