/** Finds races in code that uses PostgreSQL, on a real server, in every order that can differ. */
export type * from './core/model.ts'
export { type ExploreOptions, explore } from './explore.ts'
export type {
  DatabaseContext,
  Flow,
  FlowContext,
  InvariantContext,
  Rows,
} from './run/options.ts'
