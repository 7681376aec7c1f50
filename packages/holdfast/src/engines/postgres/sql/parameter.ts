/** A type of PostgreSQL's own that a value is read as. */
type Scalar = 'text' | 'bool' | 'int2' | 'int4' | 'int8' | 'uuid' | 'date' | 'timestamptz' | 'jsonb'

export type ParameterType = Scalar | `${Scalar}[]`

/** `$n` as a value of a type. Bound as text by every client, so that all of them bind it alike. */
export function parameter(number: number, type: ParameterType): string {
  const bound = `$${number}::pg_catalog.text`
  return type === 'text' ? bound : `${bound}::pg_catalog.${type}`
}

/** One for each type, in their order. */
export function parameters(types: readonly ParameterType[]): string {
  return types.map((type, at) => parameter(at + 1, type)).join(', ')
}
