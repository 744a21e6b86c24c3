import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.InvalidRequestException;
import dev.langchain4j.model.anthropic.AnthropicChatModel;
import dev.langchain4j.model.anthropic.AnthropicStreamingChatModel;
import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.StreamingChatModel;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiResponsesChatModel;
import dev.langchain4j.model.openai.OpenAiResponsesStreamingChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/**
 * LangChain4j against `advisor serve`, with every protocol that it speaks: the tests of libraries.py.
 *
 * <p>Usage: java LangChain4j.java URL, with the address of the server of libraries.mjs
 */
public class LangChain4j {
    static int passed;
    static int failed;

    /** A client asks with messages. For Responses it names the response before, for others the conversation. */
    interface Client {
        ChatResponse ask(List<ChatMessage> messages, String conversation, String previous);
    }

    /** A conversation, with the messages that the client has. */
    static class Chat {
        final Client client;
        final List<ChatMessage> messages = new ArrayList<>();
        final String conversation = "java-" + System.nanoTime();
        String previous;

        Chat(Client client) {
            this.client = client;
        }

        String ask(String text) {
            messages.add(UserMessage.from(text));
            var response = client.ask(messages, conversation, previous);
            messages.add(response.aiMessage());
            previous = response.id();
            return response.aiMessage().text();
        }

        RuntimeException fails(String text) {
            String answer;
            try {
                answer = ask(text);
            } catch (RuntimeException error) {
                return error;
            }
            throw new AssertionError("no error: " + answer);
        }
    }

    static ChatResponse streamed(StreamingChatModel model, List<ChatMessage> messages) {
        var answer = new CompletableFuture<ChatResponse>();
        model.chat(messages, new StreamingChatResponseHandler() {
            @Override
            public void onCompleteResponse(ChatResponse response) {
                answer.complete(response);
            }

            @Override
            public void onError(Throwable error) {
                answer.completeExceptionally(error);
            }
        });
        try {
            return answer.orTimeout(60, TimeUnit.SECONDS).join();
        } catch (CompletionException error) {
            throw error.getCause() instanceof RuntimeException cause ? cause : error;
        }
    }

    static void test(String name, Runnable run) {
        try {
            run.run();
            passed += 1;
            System.out.println("ok      langchain4j: " + name);
        } catch (RuntimeException | AssertionError error) {
            failed += 1;
            System.out.println("FAILED  langchain4j: " + name);
            error.printStackTrace(System.out);
        }
    }

    static void expect(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void scenes(String name, Client client) {
        test(name + ": two turns with a tool of the chain, and the second knows the first", () -> {
            var chat = new Chat(client);
            var first = chat.ask("How is the weather?");
            expect(first.startsWith("The tool says: ") && first.contains("\"degrees\""), first);
            var result = first.substring("The tool says: ".length());
            var second = chat.ask("What have I asked?");
            var lines = List.of("user: How is the weather?", "assistant: a call", "tool: " + result, "assistant: " + first, "user: What have I asked?");
            expect(second.equals(String.join("\n", lines)), second);
        });
        test(name + ": an answer that breaks off is an error", () -> {
            var error = new Chat(client).fails("Break off.");
            expect(error.toString().contains("broke off"), error);
        });
        test(name + ": a conversation that is too long has the words of Anthropic", () -> {
            var refused = new Chat(client).fails("This is too long.");
            expect(refused instanceof InvalidRequestException, refused);
            for (var error : List.of(refused, new Chat(client).fails("Look for too long."))) {
                expect(error.getMessage().contains("prompt is too long"), error);
            }
        });
        test(name + ": a history that the server does not have is a 400", () -> {
            var chat = new Chat(client);
            chat.ask("Hello");
            var other = new Chat(client);
            other.messages.addAll(chat.messages);
            var error = other.fails("And now?");
            expect(error instanceof InvalidRequestException, error);
        });
    }

    public static void main(String[] arguments) {
        var url = arguments[0];
        var v1 = url + "/v1";
        scenes("chat completions, in one piece", (messages, conversation, previous) ->
            OpenAiChatModel.builder().baseUrl(v1).apiKey("none").modelName("chain").maxRetries(0)
                .customHeaders(Map.of("x-conversation-id", conversation)).build().chat(messages));
        scenes("chat completions, streamed", (messages, conversation, previous) ->
            streamed(OpenAiStreamingChatModel.builder().baseUrl(v1).apiKey("none").modelName("chain")
                .customHeaders(Map.of("x-conversation-id", conversation)).build(), messages));
        scenes("responses, in one piece", (messages, conversation, previous) ->
            OpenAiResponsesChatModel.builder().baseUrl(v1).apiKey("none").modelName("chain")
                .previousResponseId(previous).store(true).build().chat(messages));
        scenes("responses, streamed", (messages, conversation, previous) ->
            streamed(OpenAiResponsesStreamingChatModel.builder().baseUrl(v1).apiKey("none").modelName("chain")
                .previousResponseId(previous).store(true).build(), messages));
        scenes("messages, in one piece", (messages, conversation, previous) ->
            AnthropicChatModel.builder().baseUrl(v1).apiKey("none").modelName("chain").maxRetries(0)
                .customHeaders(Map.of("x-conversation-id", conversation)).build().chat(messages));
        scenes("messages, streamed", (messages, conversation, previous) ->
            streamed(AnthropicStreamingChatModel.builder().baseUrl(v1).apiKey("none").modelName("chain")
                .customHeaders(Map.of("x-conversation-id", conversation)).build(), messages));
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
