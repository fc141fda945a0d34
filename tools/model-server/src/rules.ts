import type { Conversation } from './dialects/index.ts';
import type { Reply, Rule, Script, When } from './script.ts';

interface CompiledRule {
  readonly reply: Reply;
  readonly patterns: Readonly<Partial<Record<keyof When, RegExp>>>;
  readonly hasConditions: boolean;
  remaining: number;
}

/** The rules of a script with their remaining counts. @throws SyntaxError for an invalid regular expression */
export class Rules {
  readonly #rules: readonly CompiledRule[];

  constructor(script: Script) {
    this.#rules = script.rules.map(compile);
  }

  /** The reply of the first matching rule, with its groups filled in. Uses up one of the rule's `times`. */
  replyTo(conversation: Conversation, path: string): Reply {
    for (const rule of this.#rules) {
      const groups = rule.remaining > 0 ? match(rule, conversation, path) : undefined;
      if (groups === undefined) continue;
      rule.remaining -= 1;
      return filled(rule.reply, groups);
    }
    return { text: `You said: ${conversation.user}` };
  }
}

function compile({ when = {}, times, reply }: Rule): CompiledRule {
  const patterns = Object.fromEntries(
    Object.entries(when).map(([name, pattern]) => [name, new RegExp(pattern, 's')]),
  );
  const hasConditions = Object.keys(patterns).length > 0;
  return { reply, patterns, hasConditions, remaining: times ?? Number.POSITIVE_INFINITY };
}

/** The groups of the match; undefined when the rule does not match. */
function match(
  { patterns, hasConditions }: CompiledRule,
  conversation: Conversation,
  path: string,
): readonly string[] | undefined {
  const { tool } = conversation;
  // Only rules with `tool` may answer a tool result. Another rule would repeat its tool call endlessly.
  if (tool !== undefined && hasConditions && patterns.tool === undefined) return undefined;
  if (tool === undefined && patterns.tool !== undefined) return undefined;
  const values = { ...conversation, tool: tool ?? '', path };
  let groups: readonly string[] = [];
  for (const name of ['path', 'model', 'system', 'user', 'tool'] as const) {
    const pattern = patterns[name];
    if (pattern === undefined) continue;
    const found = pattern.exec(values[name]);
    if (found === null) return undefined;
    if (name === 'user' || name === 'tool') groups = found;
  }
  return groups;
}

function filled(reply: Reply, groups: readonly string[]): Reply {
  return {
    ...reply,
    ...(reply.text === undefined
      ? {}
      : { text: fill(reply.text, groups) as string | readonly string[] }),
    ...(reply.tool_calls === undefined
      ? {}
      : {
          tool_calls: reply.tool_calls.map((call) => ({
            name: call.name,
            arguments: fill(call.arguments ?? {}, groups),
          })),
        }),
  };
}

/** Replaces `$1` to `$9` with the groups in every string of a JSON value. A group without a match becomes empty. */
function fill(value: unknown, groups: readonly string[]): unknown {
  if (typeof value === 'string') {
    if (groups.length === 0) return value;
    return value.replace(/\$([1-9])/g, (whole, index) =>
      Number(index) < groups.length ? (groups[Number(index)] ?? '') : whole,
    );
  }
  if (Array.isArray(value)) return value.map((element) => fill(element, groups));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, v]) => [name, fill(v, groups)]));
}
