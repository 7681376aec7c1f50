export type * from './core/model.ts'
