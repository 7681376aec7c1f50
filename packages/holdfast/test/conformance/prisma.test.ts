import { exerciseDriver } from './exercise-driver.ts'
import { prismaErrors } from './prisma/prisma-errors.ts'
import { openPrisma } from './prisma/prisma-harness.ts'
import { prismaTimeouts } from './prisma/prisma-timeouts.ts'

const at = exerciseDriver('Prisma', openPrisma, ['the root client', 'an extended root client'])
prismaErrors(at)
prismaTimeouts(at)
