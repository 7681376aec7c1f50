import { Logger } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule)
  // SIGTERM: stop to listen, answer what has come, end what runs, let go of the pool.
  app.enableShutdownHooks()
  await app.listen(process.env['PORT'] ?? 3000, '127.0.0.1')
  Logger.log(`listening on ${await app.getUrl()}`)
}

void main()
