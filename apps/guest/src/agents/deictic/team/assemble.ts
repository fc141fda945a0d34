import type { AgentSetup } from '@svc/contract';
import type { ModelMessage } from 'ai';
import type { AgentTool } from '../../tools/tool.ts';
import { Conversation } from '../conversation/conversation.ts';
import type { Conversations } from '../conversation/record.ts';
import type { WorkingAgent } from '../loop/agent-loop.ts';
import { delegateTool, type Member } from './delegate.ts';
import {
  type AgentDescription,
  baseInstructions,
  coordinatorInstructions,
  memberInstructions,
} from './instructions.ts';
import { limitTools } from './limit-tools.ts';

/** The agents of a session. */
export interface Team {
  /** The agent that clients talk to. */
  readonly lead: WorkingAgent;
  /** All conversations, in the form of the record. */
  conversations(): Conversations;
}

/** Key of the lead's conversation in the record. No agent of an app has an empty name. */
const LEAD = '';

/**
 * Creates one agent or, for an app with several agents, a coordinator that delegates work to them. Each has its own
 * conversation. `perform` has a member work on a prompt within the running task.
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
  const [one, ...rest] = makeUnique(first, others);
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

/** Makes names and capabilities unique: several sets of an app may contain the same ones. */
function makeUnique(
  first: AgentDescription,
  others: readonly AgentDescription[],
): [NamedAgent, ...NamedAgent[]] {
  const names = new Set<string>();
  const keys = new Set<string>();
  const unique = (agent: AgentDescription): NamedAgent => {
    const name = uniqueName(agent.name, names);
    const key = uniqueName(agent.capability_name || name, keys);
    names.add(name);
    keys.add(key);
    return { agent, name, key };
  };
  return [unique(first), ...others.map(unique)];
}

function uniqueName(name: string, taken: ReadonlySet<string>): string {
  let unique = name;
  for (let number = 2; taken.has(unique); number += 1) unique = `${name} ${number}`;
  return unique;
}
