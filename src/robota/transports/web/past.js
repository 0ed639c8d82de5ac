// Messages as the events that would have told of them: a fork has no others.

export function* eventsOf(messages) {
	for (const {role, content, toolCalls = [], toolCallId, name, metadata} of messages) {
		if (role === "user") yield {event: "run_start", prompt: content}
		if (role === "assistant") yield {event: "complete", text: content}
		for (const call of toolCalls) yield {event: "tool_start", callId: call.id, toolName: call.name, arguments: JSON.parse(call.arguments || "{}")}
		if (role === "tool") yield {event: "tool_end", callId: toolCallId, toolName: name, outcome: metadata?.success === false ? "error" : "success", content}
	}
}
