/** `POST /v1/sandboxes/{id}/exec`. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { failsWith, NO_NUL } from '../schema.ts';
import { EnvVars } from './env.ts';

export const ExecRequest = Type.Object(
  {
    command: Type.String({
      minLength: 1,
      maxLength: LIMITS.commandChars,
      pattern: NO_NUL,
      description: 'Shell command.',
      examples: ['uname -a'],
      ...failsWith('command_required'),
    }),
    cwd: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: LIMITS.pathBytes,
        pattern: '^/[^\\u0000]*$',
        description: 'Absolute working directory, which must exist.',
      }),
    ),
    env: Type.Optional(EnvVars),
    timeout_seconds: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: LIMITS.execTimeoutSecondsMax,
        description: 'The command is killed after this long.',
      }),
    ),
  },
  { title: 'ExecRequest' },
);
export type ExecRequest = Static<typeof ExecRequest>;

const outcomeFields = {
  exit_code: Type.Integer({ description: '128 + n when signal n ended it; 124 when timed out.' }),
  duration_ms: Type.Number(),
  truncated: Type.Boolean({
    description: `Whether output beyond ${LIMITS.execOutputBytes} bytes, of stdout and stderr together, was dropped.`,
  }),
  timed_out: Type.Optional(Type.Literal(true, { description: '`timeout_seconds` ended it.' })),
};

export const ExecResponse = Type.Object(
  {
    output: Type.String({
      description:
        'stdout and stderr in the order in which they arrived. Lines that a command writes to both within a few milliseconds may change places; `exec 2>&1` as its first line keeps the exact order, with everything in `stdout`.',
    }),
    stdout: Type.String({ description: 'The part of `output` that the command wrote to stdout.' }),
    stderr: Type.String({ description: 'The part of `output` that the command wrote to stderr.' }),
    ...outcomeFields,
  },
  { title: 'ExecResponse' },
);
export type ExecResponse = Static<typeof ExecResponse>;

/** Data of a streamed exec's `stdout` and `stderr` events. */
export const ExecOutputEvent = Type.Object({ data: Type.String() });
export type ExecOutputEvent = Static<typeof ExecOutputEvent>;

/** Data of the `exit` event, the last event of a streamed exec that completed. */
export const ExecExitEvent = Type.Object(outcomeFields);
export type ExecExitEvent = Static<typeof ExecExitEvent>;

/** Data of the `error` event, the last event of a streamed exec that failed after it began. */
export const ExecErrorEvent = Type.Object({ code: Type.String(), message: Type.String() });
export type ExecErrorEvent = Static<typeof ExecErrorEvent>;

/** A server-sent event of a streamed exec, as parsed by clients. */
export type ExecEvent =
  | { readonly event: 'stdout' | 'stderr'; readonly data: ExecOutputEvent }
  | { readonly event: 'exit'; readonly data: ExecExitEvent }
  | { readonly event: 'error'; readonly data: ExecErrorEvent };

/** Exit code of a command that `timeout_seconds` ended, the same as that of coreutils' `timeout`. */
export const EXEC_TIMEOUT_EXIT_CODE = 124;

export const EVENT_STREAM_MEDIA_TYPE = 'text/event-stream';
