import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';

const optional = <T extends TSchema>(type: T) => Type.Optional(type);
const Tokens = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Integer({ minimum: 0 });

/** Regular expressions; all that are there must match. */
export const When = Type.Object(
  {
    /** On the latest text of the user. */
    user: optional(Type.String()),
    /** On the latest tool result, when that is the newest of the conversation. */
    tool: optional(Type.String()),
    system: optional(Type.String()),
    model: optional(Type.String()),
    path: optional(Type.String()),
  },
  { additionalProperties: false },
);
export type When = Static<typeof When>;

export const Reply = Type.Object(
  {
    /** A list is sent as that many chunks of the stream. `$1` is the first group of what matched. */
    text: optional(
      Type.Union([Type.String(), Type.Unsafe<readonly string[]>(Type.Array(Type.String()))]),
    ),
    /** `$1` in any string of the arguments is replaced too. */
    tool_calls: optional(
      Type.Array(Type.Object({ name: Type.String(), arguments: optional(Type.Unknown()) })),
    ),
    /** `input_tokens` is all of the input, the cached part with it. Default: a fourth of the characters. */
    usage: optional(
      Type.Object({
        input_tokens: Tokens,
        output_tokens: Tokens,
        cached_input_tokens: optional(Tokens),
      }),
    ),
    /** Before each chunk of a stream but the first. */
    chunk_delay_ms: optional(Milliseconds),
    first_byte_delay_ms: optional(Milliseconds),
    /** 400 or above: a failing answer, in the vendor's form. */
    status: optional(Type.Integer({ minimum: 200, maximum: 599 })),
    /** The header `retry-after` of a failing answer. */
    retry_after: optional(Type.String()),
    /** Instead of the body that would be sent. */
    body: optional(Type.Unknown()),
    /**
     * `hang`: never answers. `cut`: breaks the connection in the middle of the answer. `garbage`: 200 with what nobody
     * can read. `close`: resets the connection without an answer.
     */
    fault: optional(Type.Enum(['hang', 'cut', 'garbage', 'close'])),
  },
  { additionalProperties: false },
);
export type Reply = Static<typeof Reply>;

export const Rule = Type.Object(
  {
    when: optional(When),
    /** Answers at most so often; then the next rule is looked at. */
    times: optional(Type.Integer({ minimum: 0 })),
    reply: Reply,
  },
  { additionalProperties: false },
);
export type Rule = Static<typeof Rule>;

/** What a model server says. The first rule that matches answers; without one the user's text is repeated. */
export const Script = Type.Object(
  { rules: Type.Array(Rule), $schema: optional(Type.String()) },
  { additionalProperties: false },
);
export type Script = Static<typeof Script>;

/** Checks what is said to be a script. Throws an Error that names every place at fault. */
export function parseScript(value: unknown): Script {
  if (Value.Check(Script, value)) return value;
  const problems = Value.Errors(Script, value).map(
    ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
  );
  throw new Error(`the script is not valid: ${problems.join('; ')}`);
}
