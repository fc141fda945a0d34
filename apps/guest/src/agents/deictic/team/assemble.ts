import type { AgentSetup } from '@svc/contract';
import type { ModelMessage } from 'ai';
import { Conversation } from '../conversation/conversation.ts';
import type { Conversations } from '../conversation/record.ts';
import type { WorkingAgent } from '../loop/work.ts';
import type { AgentTool } from '../tools/index.ts';
import { delegateTool, type Member } from './delegate.ts';
import {
  type AgentDescription,
  baseInstructions,
  coordinatorInstructions,
  memberInstructions,
} from './instructions.ts';
import { limitTools } from './limit-tools.ts';

/** Those who work in a session. */
export interface Team {
  /** Whom the client talks to. */
  readonly lead: WorkingAgent;
  /** All conversations, as they are kept. */
  conversations(): Conversations;
}

/** In the record, the conversation of the lead. No agent of an app has an empty name. */
const LEAD = '';

/**
 * One agent, or with an app of several agents a coordinator that hands work to them. Each has a conversation of its
 * own; `perform` has a member work on a prompt within the task that runs.
 */
export function assembleTeam(parts: {
  readonly setup: Pick<AgentSetup, 'app' | 'wireVersion'>;
  readonly workingDirectory: string;
  readonly tools: readonly AgentTool[];
  readonly restored: Conversations;
  perform(agent: WorkingAgent, prompt: string): Promise<string>;
  log(text: string): void;
}): Team {
  const { setup, tools, restored, log } = parts;
  const base = () => baseInstructions(parts.workingDirectory);
  const conversations = new Map<string, Conversation>();
  const conversation = (key: string) => {
    const own = new Conversation(restored.get(key));
    conversations.set(key, own);
    return own;
  };
  const team = (lead: WorkingAgent): Team => ({
    lead,
    conversations: () => {
      const all = new Map<string, ModelMessage[]>();
      for (const [key, own] of conversations) all.set(key, own.messages());
      return all;
    },
  });

  const described = setup.app?.capability_sets.flatMap(({ agents }) => agents) ?? [];
  const [first, ...others] = described;
  if (first === undefined || setup.app === undefined) {
    const lead = { name: undefined, conversation: conversation(LEAD), tools, instructions: base };
    return team(lead);
  }
  if (others.length === 0 || setup.wireVersion === 1) {
    if (others.length > 0) log(`wire version 1 has one agent: ${first.name}`);
    return team({
      name: undefined,
      conversation: conversation(LEAD),
      tools: limitTools(tools, first, log),
      instructions: () => memberInstructions(base(), first),
    });
  }

  const member = ({ agent, name, key }: NamedAgent): Member => {
    const worker: WorkingAgent = {
      name,
      conversation: conversation(name),
      tools: limitTools(tools, agent, log),
      instructions: () => memberInstructions(base(), agent),
    };
    const description = agent.capability_description ?? agent.capability_name ?? agent.name;
    return { key, description, work: (prompt) => parts.perform(worker, prompt) };
  };
  const [one, ...rest] = nameApart(first, others);
  const { name: app } = setup.app;
  const names = [one, ...rest].map(({ name }) => name);
  return team({
    name: uniqueName('coordinator', new Set(names)),
    conversation: conversation(LEAD),
    tools: [delegateTool([member(one), ...rest.map(member)])],
    instructions: () => coordinatorInstructions(base(), app),
  });
}

interface NamedAgent {
  readonly agent: AgentDescription;
  readonly name: string;
  readonly key: string;
}

/** Gives agents of the same name or capability, which several sets may have, names of their own. */
function nameApart(
  first: AgentDescription,
  others: readonly AgentDescription[],
): [NamedAgent, ...NamedAgent[]] {
  const names = new Set<string>();
  const keys = new Set<string>();
  const apart = (agent: AgentDescription): NamedAgent => {
    const name = uniqueName(agent.name, names);
    const key = uniqueName(agent.capability_name || name, keys);
    names.add(name);
    keys.add(key);
    return { agent, name, key };
  };
  return [apart(first), ...others.map(apart)];
}

function uniqueName(name: string, taken: ReadonlySet<string>): string {
  let unique = name;
  for (let number = 2; taken.has(unique); number += 1) unique = `${name} ${number}`;
  return unique;
}
