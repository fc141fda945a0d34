import { type Static, Type } from 'typebox';
import { failsWith } from '../schema.ts';

const Name = Type.String({ minLength: 1, maxLength: 256 });

/** An agent of an app, chosen by its capability and limited to the named tools (all tools if it names none). */
export const AppAgent = Type.Object({
  name: Name,
  capability_name: Type.Optional(Type.String({ maxLength: 256 })),
  capability_description: Type.Optional(Type.String({ maxLength: 16_384 })),
  tools: Type.Optional(
    Type.Array(Type.String({ maxLength: 256 }), {
      maxItems: 256,
      description: 'The only tools that the agent may use. None: all.',
    }),
  ),
});

/** The nested app description. A flat one, without `capability_sets`, is refused. */
export const AppJson = Type.Object(
  {
    name: Name,
    capability_sets: Type.Array(
      Type.Object({
        name: Name,
        agents: Type.Array(AppAgent, { minItems: 1, maxItems: 64 }),
      }),
      { minItems: 1, maxItems: 64 },
    ),
  },
  { description: 'Nested app description.', ...failsWith('app_json_invalid') },
);
export type AppJson = Static<typeof AppJson>;

/** Whether the app has more than one agent, which wire version 1 does not support. */
export function isMultiAgent(app: AppJson): boolean {
  return app.capability_sets.reduce((count, set) => count + set.agents.length, 0) > 1;
}
