import fc from 'fast-check'

/**
 * One seed for all, so that what passes without a change fails because of a change. And that a history fails is
 * enough: the shortest one would take longer to find than all tests together.
 */
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  seed: Number(process.env['HOLDFAST_SEED']),
  endOnFailure: true,
})
