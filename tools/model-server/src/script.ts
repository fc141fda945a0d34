import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';

const optional = <T extends TSchema>(type: T) => Type.Optional(type);
const Tokens = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Integer({ minimum: 0 });

/** Conditions of a rule, as regular expressions. All given ones must match. */
export const When = Type.Object(
  {
    /** Matches the latest text of the user. */
    user: optional(Type.String()),
    /** Matches the latest tool result, if nothing follows it in the conversation. */
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
    /** Each element of a list is sent as one chunk of the stream. `$1` stands for the first group of the match. */
    text: optional(
      Type.Union([Type.String(), Type.Unsafe<readonly string[]>(Type.Array(Type.String()))]),
    ),
    /** `$1` is replaced in all strings of the arguments too. */
    tool_calls: optional(
      Type.Array(Type.Object({ name: Type.String(), arguments: optional(Type.Unknown()) })),
    ),
    /** `input_tokens` includes the cached tokens. Default: a quarter of the number of characters. */
    usage: optional(
      Type.Object({
        input_tokens: Tokens,
        output_tokens: Tokens,
        cached_input_tokens: optional(Tokens),
      }),
    ),
    /** Delay before each chunk of a stream except the first. */
    chunk_delay_ms: optional(Milliseconds),
    first_byte_delay_ms: optional(Milliseconds),
    /** From 400: an error in the vendor's format. */
    status: optional(Type.Integer({ minimum: 200, maximum: 599 })),
    /** The header `retry-after` of an error. */
    retry_after: optional(Type.String()),
    /** Replaces the body of the answer. */
    body: optional(Type.Unknown()),
    /**
     * `hang`: does not answer. `cut`: closes the connection in the middle of the answer. `garbage`: answers 200 with an
     * invalid body. `close`: resets the connection without an answer.
     */
    fault: optional(Type.Enum(['hang', 'cut', 'garbage', 'close'])),
  },
  { additionalProperties: false },
);
export type Reply = Static<typeof Reply>;

export const Rule = Type.Object(
  {
    when: optional(When),
    /** Maximum number of answers of this rule. Afterwards it no longer matches. */
    times: optional(Type.Integer({ minimum: 0 })),
    reply: Reply,
  },
  { additionalProperties: false },
);
export type Rule = Static<typeof Rule>;

/** The answers of a model server. The first matching rule answers; without one, the server repeats the user's text. */
export const Script = Type.Object(
  { rules: Type.Array(Rule), $schema: optional(Type.String()) },
  { additionalProperties: false },
);
export type Script = Static<typeof Script>;

/** Validates a script. @throws Error that names every invalid part */
export function parseScript(value: unknown): Script {
  if (Value.Check(Script, value)) return value;
  const problems = Value.Errors(Script, value).map(
    ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
  );
  throw new Error(`the script is not valid: ${problems.join('; ')}`);
}
