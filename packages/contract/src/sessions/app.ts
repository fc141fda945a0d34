import { type Static, Type } from 'typebox';
import { AppAgent } from '../sandboxes/app-json.ts';
import { failsWith, mapOf } from '../schema.ts';

const Name = Type.String({ minLength: 1, maxLength: 256 });

/** A capability set: its tools, and the agents that share the work. Without agents, the tools are those of a single one. */
const SessionCapabilitySet = Type.Object({
  set_id: Type.Optional(Name),
  name: Type.Optional(Name),
  tools: Type.Optional(
    Type.Array(Type.String({ maxLength: 256 }), {
      maxItems: 256,
      description: 'The only tools of its agents. None: all.',
    }),
  ),
  agents: Type.Optional(Type.Array(AppAgent, { minItems: 1, maxItems: 64 })),
});
export type SessionCapabilitySet = Static<typeof SessionCapabilitySet>;

/** Keyed by set id, or as a list, like in the catalogue and in `app_json`. */
export const SessionCapabilitySets = Type.Union(
  [
    mapOf<SessionCapabilitySet>(SessionCapabilitySet, { minProperties: 1, maxProperties: 64 }),
    Type.Array(SessionCapabilitySet, { minItems: 1, maxItems: 64 }),
  ],
  { ...failsWith('app_json_invalid') },
);
export type SessionCapabilitySets = Static<typeof SessionCapabilitySets>;

/** The set with this id (in a list: with this name), or undefined when there is none. */
export function findCapabilitySet(
  sets: SessionCapabilitySets,
  setId: string,
): SessionCapabilitySet | undefined {
  if (!Array.isArray(sets)) return Object.hasOwn(sets, setId) ? sets[setId] : undefined;
  return sets.find((set) => set.set_id === setId) ?? sets.find((set) => set.name === setId);
}
